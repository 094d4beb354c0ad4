# %% [markdown]
# # From a CSV file to a law
#
# A table goes in, a formula comes out, with a reason to believe it. The table here is made by the script: a
# pendulum's period for several lengths and places, with an error of half a percent and a column that has
# nothing to do with it.

# %%
import tempfile
from pathlib import Path

import numpy as np

rng = np.random.default_rng(7)
folder = Path(tempfile.mkdtemp())
length, gravity = rng.uniform(0.2, 2.0, 80), rng.uniform(1.6, 24.8, 80)
period = 2 * np.pi * np.sqrt(length / gravity) * (1 + 0.005 * rng.normal(size=80))
colour = rng.uniform(400, 700, 80)
table = folder / "pendulum.csv"
np.savetxt(
    table,
    np.stack([length, gravity, colour, period], axis=1),
    delimiter=",",
    header="length,g,colour,T",
    comments="",
    fmt="%.6g",
)
print("\n".join(table.read_text().splitlines()[:4]))

# %% [markdown]
# ## Solve
#
# The last column is the target unless another is named. `steps` instead of `time` makes the run repeatable.
# On the command line this is `physdiffuser solve pendulum.csv`.

# %%
from physdiffuser import solve
from physdiffuser.report.text.terminal import render

solution = solve(table, steps=6)
print(render(solution))
assert solution.best.text == "2*pi*sqrt(length/g)"

# %% [markdown]
# Read it from the bottom up: how the formula was found, what was checked, how large the error is on rows
# that neither search nor fit have seen, and which simpler or longer formulas would also do. It is the right
# law, and it is *verified*: no check found anything against it, and no other formula is nearly as probable.
#
# ## Doubt it
#
# The warnings are the first thing to read. A column that is not needed is a finding, too.

# %%
for warning in solution.warnings:
    print("-", warning)
assert any("colour" in warning for warning in solution.warnings)

# %% [markdown]
# The answer is the best *description of this table*. Look at the alternatives:

# %%
for row in solution.pareto:
    print(f"complexity {row.complexity:2d}  rms error {row.rmse:.3g}  test set {row.test_rmse:.3g}")

# %% [markdown]
# ## With units
#
# If the units are known, formulas that do not balance are never proposed, which leaves fewer wrong ones.

# %%
units = {"length": "m", "g": "m/s**2", "colour": "m", "T": "s"}
balanced = solve(table, units=units, steps=6)
print(balanced.best.text, "|", balanced.best.verdict)
assert balanced.best.text == solution.best.text

# %% [markdown]
# ## Use it
#
# As a function, as source code, or as a page for the browser with everything above in it. `physdiffuser
# solve` writes that page by itself, as `report.html` in the run folder.

# %%
from physdiffuser.report.export.exports import export, formula_of
from physdiffuser.report.export.functions import to_numpy
from physdiffuser.report.html import report_html

law = to_numpy(solution.best.expression, solution.names)
print(export(formula_of(solution, solution.best), "c"))
page = folder / "report.html"
page.write_text(report_html(solution), encoding="utf-8")
print(f"report.html: {len(page.read_text()) // 1000} kB")

# %% [markdown]
# ## Where it holds
#
# The table had lengths from 0.2 to 2 m. Beyond, the law is a guess; the page lists where, under *Where it
# has not been tested*. For the pendulum the guess would be right. It would not be for large swings, which
# this table knows nothing of.

# %%
ten = float(law(np.array([[10.0, 9.81, 500.0]]))[0])
print(f"period of 10 m: {ten:.3f} s, by theory {2 * np.pi * np.sqrt(10 / 9.81):.3f} s")
assert abs(ten / (2 * np.pi * np.sqrt(10 / 9.81)) - 1) < 0.1
