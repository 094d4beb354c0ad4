# %% [markdown]
# # Several targets
#
# The Balmer series of hydrogen (NIST) gives two targets: the wavelength of each line, and the energy of its
# photons in electronvolt. Both depend on the quantum number `n`.

# %%
import pandas as pd

table = pd.read_csv("examples/balmer.csv", comment="#")
table["energy"] = 1239.841984 / (1.00028 * table["wavelength"])  # in vacuum
print(table.head(3))

# %% [markdown]
# ## Solve them together
#
# On the command line this is `physdiffuser solve balmer.csv --target wavelength,energy`. The other target is
# no input.

# %%
from physdiffuser import solve_targets
from physdiffuser.targets.report import render_targets

found = solve_targets(table, targets=["wavelength", "energy"], steps=20)
for target in found:
    print(target, "=", found[target].best.text)
assert "n**2 - 4" in found["wavelength"].best.text

# %% [markdown]
# Each entry is an ordinary solution. What the laws have in common comes last in the report:

# %%
for sentence in found.sentences:
    print("-", sentence)
print(render_targets(found).splitlines()[0])

# %% [markdown]
# ## The estimator
#
# `y` has one column for each target; `targets_` holds a fitted estimator for each.

# %%
from physdiffuser import PhysDiffuserRegressor

law = PhysDiffuserRegressor(steps=20).fit(table[["n"]], table[["wavelength", "energy"]])
print(law.predict(table[["n"]].head(2)).round(3))
print(law.targets_["energy"].best_.text)
