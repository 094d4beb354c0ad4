# %% [markdown]
# # Starting formulas
#
# Boyle measured the volume and the pressure of air in 1662. Suppose two laws are under discussion: an inverse
# proportion, which Boyle found, and an exponential decay.

# %%
import pandas as pd

table = pd.read_csv("examples/boyle.csv", comment="#")
print(table.head(3))

# %% [markdown]
# On the command line each is given by `--guess`. Names that are not columns are constants to be fitted.

# %%
from physdiffuser import solve

solution = solve(table, initial=["a/V + b", "a*exp(-b*V)"], steps=10)
print("p =", solution.best.text)
for guess in solution.guesses:
    print(f"{guess.text}: {guess.sentence}")
assert [guess.state for guess in solution.guesses] == ["kept", "beaten"]

# %% [markdown]
# The first guess is kept: the law is a special case of it, with `b = 0`. A guess is a candidate like any
# other; another formula describes the table better than the second guess. The JSON document reports both
# under `guesses`:

# %%
from physdiffuser.report.documents.json_document import document

for guess in document(solution)["guesses"]:
    print(guess["state"], guess["expression"])

# %% [markdown]
# ## A guess for a function of a template
#
# With a [template](templates.md) a guess is for one of its unknown functions. The inverse wavelengths of
# hydrogen are differences of two terms; is a term a power of its number, or an exponential?

# %%
lines = pd.read_csv("examples/balmer.csv", comment="#")
terms = ["T = R/u**m", "T(n) = R*exp(-k*n)"]
found = solve(lines, template="1/(T(2) - T(n))", initial=terms, steps=4)
for guess in found.guesses:
    print(f"{guess.text}: {guess.state}")
print("T(u) =", found.template.functions["T"])
assert [guess.state for guess in found.guesses] == ["kept", "beaten"]
