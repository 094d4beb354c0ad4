# %% [markdown]
# # A known part of the law
#
# The table holds the orbits of the planets: the semi-major axis `a`, in astronomical units, and the time `T`
# of one turn, in years (Jet Propulsion Laboratory).

# %%
import pandas as pd

table = pd.read_csv("examples/kepler.csv", comment="#")[["a", "T"]]
print(table.head(3))

# %% [markdown]
# ## A known factor
#
# The orbits are nearly circles, so a planet travels about `2*pi*a` in one turn. The time is this length times
# the time that the planet needs for one unit of length. The first is known, the second is not. On the command
# line this is `--known "*2*pi*a"`: the leading `*` makes it a factor.

# %%
from physdiffuser import solve

solution = solve(table, known="*2*pi*a", steps=10)
for name, formula in solution.template.headings().items():
    print(name, "=", formula)
print("T =", solution.best.text)
assert solution.best.text == "a**1.5"

# %% [markdown]
# The function `f` is the inverse of the speed, so the speed falls as the root of the distance. The complete
# law is Kepler's third.
#
# ## A known offset
#
# Without the `*`, the known part is added: `known="g"` stands for the template `g + f(...)`. Boyle pressed
# air with mercury in a glass tube, under an atmosphere of 29.125 inches. What did the mercury add?

# %%
air = pd.read_csv("examples/boyle.csv", comment="#")
pressed = solve(air, known="29.125", steps=10)
for name, formula in pressed.template.headings().items():
    print(name, "=", formula)
print("p =", pressed.best.text)
assert "29.125" in pressed.template.functions["f"]

# %% [markdown]
# The column of mercury is the pressure of the air less that of the atmosphere, which cancels in the
# complete law.
#
# ## The document, prediction and export
#
# The JSON document has the unknown function under `template`, and the complete law under `best`. So `predict`
# and `export` give the target, the known part included.

# %%
from physdiffuser.report.documents.json_document import document

content = document(solution)
print(content["template"], content["best"]["expression"])

# %% [markdown]
# The estimator takes `known` as well:

# %%
from physdiffuser import PhysDiffuserRegressor

model = PhysDiffuserRegressor(known="*2*pi*a", steps=10).fit(table[["a"]], table["T"])
ceres = pd.DataFrame({"a": [2.77]})
print("T of Ceres:", model.predict(ceres).round(2)[0], "years")
