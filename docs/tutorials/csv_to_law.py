# %% [markdown]
# # From a CSV file to a law
#
# physdiffuser takes a table and returns a formula, with the evidence for it. The script makes the table:
# the period of a pendulum for several lengths and places, with an error of half a percent, and an
# irrelevant column.

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
# From the bottom up, the report says how the formula was found, what was checked, how large the error is
# on rows that neither search nor fit have used, and which simpler or longer formulas describe the table.
# The formula is the right law, and it is *verified*: it passed all checks, and no other formula is nearly
# as probable.
#
# ## Warnings and alternatives
#
# Read the warnings first. That a column is not needed is also a finding.

# %%
for warning in solution.warnings:
    print("-", warning)
assert any("colour" in warning for warning in solution.warnings)

# %% [markdown]
# The answer is the best *description of this table*. The alternatives are in the Pareto table:

# %%
for row in solution.pareto:
    print(f"complexity {row.complexity:2d}  rms error {row.rmse:.3g}  test set {row.test_rmse:.3g}")

# %% [markdown]
# ## With units
#
# If the units are known, formulas whose units do not balance are excluded, so fewer wrong formulas
# remain.

# %%
units = {"length": "m", "g": "m/s**2", "colour": "m", "T": "s"}
balanced = solve(table, units=units, steps=6)
print(balanced.best.text, "|", balanced.best.verdict)
assert balanced.best.text == solution.best.text

# %% [markdown]
# ## Use it
#
# The law is available as a function, as source code, or as a page for the browser that holds everything
# above. `physdiffuser solve` writes this page as `report.html` in the run folder.

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
# The table has lengths from 0.2 to 2 m. Outside of this range the law is not tested; the page lists such
# ranges under *Where it has not been tested*. For this pendulum the law holds there as well. It does not
# hold for large swings, of which the table has none.

# %%
ten = float(law(np.array([[10.0, 9.81, 500.0]]))[0])
print(f"period of 10 m: {ten:.3f} s, by theory {2 * np.pi * np.sqrt(10 / 9.81):.3f} s")
assert abs(ten / (2 * np.pi * np.sqrt(10 / 9.81)) - 1) < 0.1
