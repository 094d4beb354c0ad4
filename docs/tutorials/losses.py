# %% [markdown]
# # Losses
#
# Hubble's table of 1929 holds distances and velocities of 24 nebulae. Their own motions add noise to the
# law `v = H*r`. This tutorial fits it by least squares, by the median, and by a likelihood.

# %%
import numpy as np
import pandas as pd

from physdiffuser import solve

table = pd.read_csv("examples/hubble.csv", comment="#")[["r", "v"]]
print(table.describe().loc[["count", "min", "max"]])

# %% [markdown]
# ## The median
#
# On the command line this is `--loss absolute`. Half of the velocities lie above the law.

# %%
median = solve(table, target="v", loss="absolute", steps=8)
print(median.best.text, "mean loss", round(median.best.mean_loss, 1))
for constant in median.best.constants:
    print(constant.name, "=", constant.text, "from", round(constant.low), "to", round(constant.high))

# %% [markdown]
# The intervals come from a bootstrap. The verdict and the probability are defined for least squares only
# and are not given:

# %%
print(median.best.verdict, "-", median.best.verdict_reason)
assert median.best.probability is None

# %% [markdown]
# ## Is a nebula approaching?
#
# `--loss logistic` is for targets 0 and 1. The law is a probability.

# %%
near = table.assign(approaches=(table["v"] < 0).astype(float))[["r", "approaches"]]
odds = solve(near, target="approaches", loss="logistic", steps=8)
print(odds.best.text)
assert odds.best.text.startswith("1/(1 + exp(")

# %% [markdown]
# ## A likelihood with a parameter
#
# Suppose the velocities have normal errors of unknown size `sigma`. The parameters of a likelihood are
# fitted together with the constants.


# %%
class Normal:
    def __init__(self):
        self.parameters = {"sigma": 100.0}

    def nats(self, target, prediction, *, sigma):
        if sigma <= 0:
            return np.full(target.shape, np.inf)
        return 0.5 * ((target - prediction) / sigma) ** 2 + np.log(sigma * np.sqrt(2 * np.pi))


own = solve(table, target="v", loss=Normal(), steps=8)
print(own.best.text)
