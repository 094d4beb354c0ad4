# %% [markdown]
# # Templates: part of the law is known
#
# The table holds the wavelengths of the Balmer series of hydrogen (NIST). In 1908 Ritz proposed that the
# inverse of each wavelength is the difference of two terms, `T(2) - T(n)`, with one function `T` for all
# lines. Which function?

# %%
import pandas as pd

table = pd.read_csv("examples/balmer.csv", comment="#")
print(table.head(3))

# %% [markdown]
# ## One function in two places
#
# On the command line this is `--template "1/(T(2) - T(n))"`. `T` is no operator, so it is an unknown
# function. The name of its argument is `u`, as it is called with a number and with a column.

# %%
from physdiffuser import solve

solution = solve(table, template="1/(T(2) - T(n))", steps=10)
for name, formula in solution.template.headings().items():
    print(name, "=", formula)
print("wavelength =", solution.best.text)
assert solution.template.functions["T"].endswith("/u**2")

# %% [markdown]
# This is Rydberg's term, `R/n**2`, with `R = 0.0109709` per nanometre (in air). A constant that is added
# to `T` would cancel, so none is shown. The complete formula has one fitted constant, in two places:

# %%
print("R =", solution.best.constants[0].text)

# %% [markdown]
# ## A known factor
#
# `known` is short for a template with one function of all columns: `known="g"` stands for `g + f(...)`,
# and `known="*g"`, with a leading `*`, for `g*f(...)`.

# %%
factor = solve(table, known="*n**2", steps=10)
print(factor.template.text)
print(factor.template.headings())
assert "n**2" in factor.template.functions["f"]

# %% [markdown]
# ## The document
#
# The JSON document has the functions under `template`, and the law under `best`, as without a template. So
# `predict` and `export` need not know about templates.

# %%
from physdiffuser.report.documents.json_document import document

content = document(solution)
print(content["template"])
print(content["best"]["expression"])
