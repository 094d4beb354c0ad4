# %% [markdown]
# # Dates and large offsets
#
# The population of the United States in millions, by census, 1790 to 1970 (U.S. Bureau of the Census; `uspop`
# of R).

# %%
import numpy as np
import pandas as pd

from physdiffuser import PhysDiffuserRegressor, solve

people = [3.93, 5.31, 7.24, 9.64, 12.9, 17.1, 23.2, 31.4, 39.8, 50.2]
people += [62.9, 76.0, 92.0, 105.7, 122.8, 131.7, 151.3, 179.3, 203.2]
table = pd.DataFrame({"year": np.arange(1790, 1971, 10), "population": people})

# %% [markdown]
# ## A hint
#
# A note says that the years lie far from 0.

# %%
plain = solve(table, steps=16)
print(plain.best.text)
print(plain.notes["origin"])

# %% [markdown]
# ## Another origin
#
# On the command line this is `--auto-origin`. The law contains the shift, and its input is the year as in
# the table.

# %%
law = PhysDiffuserRegressor(auto_origin=True, steps=40).fit(table[["year"]], table["population"])
print(law.best_.text)
print(law.predict(pd.DataFrame({"year": [1850, 1970]})).round(1))
assert "year - 1790" in law.best_.text
print(law.solution_.notes["origin"])
