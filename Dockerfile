# physdiffuser on the processor:
#
#   docker build -t physdiffuser .
#   docker run --rm -v "$PWD:/data" physdiffuser solve data.csv
#   docker run --rm -v "$PWD:/data" --network host physdiffuser app --no-browser
FROM python:3.12-slim AS build
WORKDIR /source
COPY . .
RUN python -m venv /opt/physdiffuser \
 && /opt/physdiffuser/bin/pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu '.[app,excel,parquet,units]' \
 # What torch brings for those who build or test it.
 && rm -rf /opt/physdiffuser/lib/python3*/site-packages/torch/test /opt/physdiffuser/lib/python3*/site-packages/torch/include

FROM python:3.12-slim
COPY --from=build /opt/physdiffuser /opt/physdiffuser
ENV PATH=/opt/physdiffuser/bin:$PATH MPLCONFIGDIR=/tmp/matplotlib
RUN useradd --create-home --uid 1000 user
USER user
WORKDIR /data
ENTRYPOINT ["physdiffuser"]
