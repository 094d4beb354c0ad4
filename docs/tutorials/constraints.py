# %% [markdown]
# # Constraints from theory
#
# The table holds the energy that the filament of a carbon lamp radiates at six temperatures (Keeping 1962).
# Theory says what any law of it must satisfy: it grows with the temperature, ever faster, and a body at
# absolute zero radiates nothing.

# %%
import pandas as pd

table = pd.read_csv("examples/filament.csv", comment="#")
print(table)

# %% [markdown]
# ## The constraints
#
# On the command line they stand in a YAML file, `--constraints rules.yaml`:
#
# ```yaml
# - increasing: T
#   region: {T: [0, 5]}
# - convex: T
#   region: {T: [0, 5]}
# - value: {at: {T: 0}, is: 0}
# ```
#
# The region is wider than the table. Without one, a constraint holds in the bounding box of the table.

# %%
from physdiffuser import solve

wide = {"T": [0, 5]}
rules = [
    {"increasing": "T", "region": wide},
    {"convex": "T", "region": wide},
    {"value": {"at": {"T": 0}, "is": 0}},
]
solution = solve(table, constraints=rules, steps=10)
print("W =", solution.best.text)
for status in solution.constraints:
    print(f"{status.text}: {status.sentence}")
assert all(status.state == "proved" for status in solution.constraints)

# %% [markdown]
# *Proved* refers to the whole region: the derivatives are bounded by interval arithmetic. Every row of
# the Pareto table satisfies the constraints. The value at 0 excludes every formula with a constant term:

# %%
for row in solution.pareto:
    print(row.text)

# %% [markdown]
# ## Constraints that the data contradict
#
# A warning reports a constraint that contradicts the data. The volume of air under pressure (Boyle 1662)
# does not grow:

# %%
air = pd.read_csv("examples/boyle.csv", comment="#")
wrong = solve(air, constraints=[{"increasing": "V"}], steps=5)
contradictions = [text for text in wrong.warnings if "contradicts" in text]
print(contradictions[0])
