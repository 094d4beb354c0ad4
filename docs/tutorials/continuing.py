# %% [markdown]
# # Watching, stopping and continuing a search
#
# The table holds the energy that the filament of a carbon lamp radiates at six temperatures (Keeping 1962,
# NIST's dataset DanWood). The search is watched, stopped early, and continued.

# %%
import pandas as pd

table = pd.read_csv("examples/filament.csv", comment="#")
X, y = table[["T"]], table["W"]

# %% [markdown]
# ## Watching
#
# `on_improvement` is called with each better formula. If it returns True, the search ends with the best so
# far.

# %%
from physdiffuser import PhysDiffuserRegressor

seen = []


def watch(progress):
    seen.append(progress.best)
    return len(seen) == 2


model = PhysDiffuserRegressor(steps=2, warm_start=True, random_state=0)
model.fit(X, y, on_improvement=watch)
print(seen)
before = model.best_.rmse

# %% [markdown]
# ## Continuing
#
# With `warm_start`, `fit` continues from the formulas of the previous fit. None of them is lost, so the
# error of the most accurate formula cannot increase.

# %%
model.set_params(steps=10).fit(X, y)
print(model.equations_[["complexity", "rmse", "equation"]])
assert model.equations_["rmse"].min() <= before * (1 + 1e-9)

# %% [markdown]
# ## Other rows of the table
#
# `predict` takes the number of a row, counted from 1; without it, the chosen law.

# %%
hot = pd.DataFrame({"T": [1.8]})
for row in range(1, len(model.equations_) + 1):
    print(row, model.predict(hot, row=row).round(3))

# %% [markdown]
# ## On the command line
#
# A run with `--out` can be continued by `--resume`, also after it was killed. The command prints what it
# continues from.

# %%
import subprocess

command = "physdiffuser solve examples/filament.csv --target W --steps 5 --out lamp"
subprocess.run(command.split(), check=True, capture_output=True)
again = subprocess.run([*command.split(), "--resume"], check=True, capture_output=True, text=True)
print(*[line for line in again.stderr.splitlines() if "going on" in line])
assert "going on from the run in lamp" in again.stderr
