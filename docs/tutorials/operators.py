# %% [markdown]
# # Operators of your own
#
# The table holds the wavelengths of the Balmer series of hydrogen (NIST). The term `1/(1/4 - 1/n**2)` is
# well known, so it gets a name here.

# %%
import numpy as np
import pandas as pd

table = pd.read_csv("examples/balmer.csv", comment="#")
print(table.head(3))

# %% [markdown]
# ## Define an operator
#
# On the command line this is `--operator "rydberg(n)=1/(1/4 - 1/n**2)"`.

# %%
from physdiffuser import solve

own = {"rydberg": "1/(1/4 - 1/n**2)"}
solution = solve(table, operators=own, steps=20)
print(solution.best.text)
assert "rydberg(n)" in solution.best.text

# %% [markdown]
# The operator is one node of the formula. Code, sympy and LaTeX have the expanded form, and need no
# definition.

# %%
from physdiffuser.report.export.exports import export, formula_of

print(export(formula_of(solution, solution.best), "numpy"))

# %% [markdown]
# The document keeps the definition, so that a stored law can be used later.

# %%
from physdiffuser.expressions import evaluate
from physdiffuser.report.documents.json_document import document
from physdiffuser.report.documents.solution_reader import solution_from_document

content = document(solution)
print(content["operators"])
again = solution_from_document(content)
print(np.round(evaluate(again.best.expression, np.array([[3.0], [4.0]])), 2))

# %% [markdown]
# ## Complexity
#
# An operator can be made more complex, so that it needs more evidence. Here it costs 30 instead of 3.

# %%
dear = solve(table, operators=own, complexity={"rydberg": 30}, steps=20)
print(dear.best.text)
assert "rydberg" not in dear.best.text

# %% [markdown]
# ## Forbidden nestings
#
# `forbid` excludes operators inside others, at any depth. No row of the Pareto table has one.

# %%
plain = solve(table, forbid=["log(log)", "sqrt(sqrt)", "exp(exp)"], steps=20)
print(plain.best.text)
