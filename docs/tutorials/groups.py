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

# %% [markdown]
# ## A template for the groups
#
# Part of the form may be known. Here a velocity is assumed that multiplies an unknown function of the
# concentration. The [template](templates.md) is used for all states, and its constant `Vm` differs by state
# only if the description gets shorter. On the command line this is `--group state --template "Vm*f(conc)"`.

# %%
divided = solve(table, target="rate", groups="state", template="Vm*f(conc)", steps=4)
print("f(conc) =", divided.template.headings()["f(conc)"])
print("Vm =", divided.template.group_constants["Vm"])
for state, constants in divided.best.groups.items():
    print(f"{state}: Vm = {constants[0].value:.1f}")
assert divided.template.group_constants == {"Vm": "p1"}
