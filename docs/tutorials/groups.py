# %% [markdown]
# # Groups: one form, different constants
#
# The table holds the velocity of an enzymatic reaction at several concentrations of the substrate, for cells
# treated with puromycin and for untreated ones (Treloar 1974).

# %%
import pandas as pd

table = pd.read_csv("examples/puromycin.csv", comment="#")
print(table.groupby("state").size())

# %% [markdown]
# On the command line this is `--target rate --group state`. One law is fitted to both states. Whether a
# constant is shared is decided by description length.

# %%
from physdiffuser import solve

solution = solve(table, target="rate", groups="state", steps=30)
print("rate =", solution.best.text)
for state, constants in solution.best.groups.items():
    for constant in constants:
        print(f"{state}: {constant.name} = {constant.value:.1f}, {constant.low:.1f} to {constant.high:.1f}")
assert set(solution.best.groups) == {"treated", "untreated"}

# %% [markdown]
# This is the law of Michaelis and Menten. The largest velocity depends on the treatment; the concentration
# at half of it does not. The intervals have 95 % confidence.
#
# The document has the constants of each group, and code has them as arguments:

# %%
from physdiffuser.report.documents.json_document import document
from physdiffuser.report.export.exports import export, formula_of

print(document(solution)["best"]["groups"])
print(export(formula_of(solution, solution.best), "python"))
