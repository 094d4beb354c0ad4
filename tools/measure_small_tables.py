"""How often small tables of simple laws give the law: with outliers, and as a row of the Pareto table.

    python tools/measure_small_tables.py outliers --every 4
    python tools/measure_small_tables.py forms --every 4

`outliers` makes tables of 8 to 30 rows with no, one or two gross outliers and counts how often the chosen
formula is the law, and how often a row was left out that is no outlier. `forms` makes tables of one input
and counts how often the Pareto table holds the law, or a formula as simple that fits at least as well.
All tables are made from seeds.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from physdiffuser.core.problem import Problem
from physdiffuser.data import dataset_from_arrays
from physdiffuser.expressions import Expression, Number, complexity, evaluate, parse
from physdiffuser.expressions.tree import substitute
from physdiffuser.fitting import refit
from physdiffuser.pipeline import solve_dataset

FloatArray = npt.NDArray[np.float64]

# Law, names and range of the inputs.
OUTLIER_LAWS = (
    ("4.01 + 0.345*x", "x", (4.0, 14.0)),
    ("2.31*x", "x", (1.0, 9.0)),
    ("12.7 - 3.4*x", "x", (-2.0, 3.0)),
    ("3.2*x**1.6", "x", (0.5, 8.0)),
    ("41.3/x", "x", (0.5, 6.0)),
    ("0.73*exp(0.52*x)", "x", (0.0, 6.0)),
    ("8.4*exp(-0.9*x)", "x", (0.0, 4.0)),
    ("2.2 + 5.3*exp(-0.8*x)", "x", (0.0, 5.0)),
    ("1.7 + 2.6*log(x)", "x", (0.5, 20.0)),
    ("9.1*x/(2.3 + x)", "x", (0.3, 15.0)),
    ("1.1 + 0.42*x**2", "x", (-3.0, 4.0)),
    ("5.1*sqrt(x)", "x", (0.5, 20.0)),
    ("4.7*exp(-(x - 3.1)**2/1.9)", "x", (0.0, 6.0)),
    ("1.9*x*z", "xz", (0.5, 5.0)),
    ("2.7*x/z**2", "xz", (0.5, 4.0)),
    ("3.3 + 1.2*x - 0.7*z", "xz", (0.0, 5.0)),
)
# Laws without outliers that a simple law and an outlier may be taken for.
PEAKED_LAWS = (
    ("0.6 + 7/(1 + 9*(x - 2.6)**2)", "x", (0.0, 6.0)),
    ("3.1*sin(1.9*x)", "x", (0.0, 6.0)),
    ("1.2*x**3/(exp(x) - 1)", "x", (0.3, 9.0)),
    ("1.4/(6.3 - x)", "x", (0.0, 6.0)),
    ("exp(1.3*x) + 5*x", "x", (0.0, 6.0)),
    ("tanh(4*(x - 3))", "x", (0.0, 6.0)),
)
FORM_LAWS = (
    ("4.01 + 0.345*x", (4.0, 14.0)),
    ("3.2*x**1.6", (0.5, 8.0)),
    ("1.4 + 3.2*x**0.6", (0.5, 8.0)),
    ("0.73*exp(0.52*x)", (0.0, 6.0)),
    ("0.4 + 0.3*exp(0.7*x)", (-3.0, 6.0)),
    ("2.2 + 5.3*exp(-0.8*x)", (0.0, 5.0)),
    ("0.4 + 0.3*2**x", (-3.0, 6.0)),
    ("3.65*(1 - exp(-0.08*x))", (0.2, 45.0)),
    ("9.1*x/(2.3 + x)", (0.3, 15.0)),
    ("15.56 - 0.87*log(x)", (1.0, 60.0)),
    ("4.7*exp(-(x - 3.1)**2/1.9)", (0.0, 6.0)),
    ("5.2/(0.8 + (x - 2.7)**2)", (0.0, 6.0)),
    ("3.4*tanh(0.5*x)", (0.1, 8.0)),
    ("2.6 + 7.3/x", (0.5, 8.0)),
    ("6.4/(1 + 30.5*exp(-1.2*x))", (0.0, 6.0)),
)
OPERATORS = (None, ("add", "sub", "mul", "log"), ("add", "sub", "mul", "div", "exp"), ("add", "mul", "pow"))
# Errors of the best formula, as a share of the target's spread, up to which it is taken for the law.
NEAR = 0.02
# A row of the Pareto table is the law if it lies so near to the fitted law, in units of what that leaves.
# A row as simple is as good if its error is at most so many times as large: exact constants cost accuracy.
SAME, AS_GOOD = 0.6, 1.17


@dataclass(frozen=True)
class Table:
    """A law, its rows, and which of them are wrong."""

    law: str
    names: str
    inputs: FloatArray
    target: FloatArray
    truth: FloatArray
    wrong: frozenset[int]
    noise: float


def table(
    law: str, names: str, limits: tuple[float, float], rows: int, wrong: int, noise: float, seed: int
) -> Table:
    """Rows of a law with noise and gross outliers."""
    random = np.random.default_rng(seed)
    inputs = random.uniform(*limits, (rows, len(names)))
    truth = evaluate(parse(law, tuple(names)), inputs)
    spread = float(truth.std())
    target = truth + noise * spread * random.normal(size=rows)
    off = random.permutation(rows)[:wrong]
    target[off] += random.choice([-1.0, 1.0], wrong) * spread * random.uniform(1.0, 5.0, wrong)
    digits = 4 - int(np.floor(np.log10(np.abs(target).max())))
    return Table(law, names, inputs, np.round(target, digits - 1), truth, frozenset(off.tolist()), noise)


def free(law: Expression) -> Expression:
    """The law with its decimal numbers as fitted constants."""

    def replace(node: Expression) -> Expression | None:
        if isinstance(node, Number) and isinstance(node.value, Fraction):
            return Number(float(node.value))
        return None

    return substitute(law, replace)


def outlier_tables() -> Iterator[Table]:
    """The tables of `outliers`."""
    number = 0
    for (law, names, limits), rows, wrong, noise in itertools.product(
        OUTLIER_LAWS, (8, 11, 15, 20, 29), (0, 1, 2), (0.0, 0.02, 0.1)
    ):
        number += 1
        yield table(law, names, limits, rows, wrong, noise, number)
    for (law, names, limits), rows, noise in itertools.product(
        PEAKED_LAWS, (11, 15, 20, 29), (0.0, 0.02, 0.1)
    ):
        number += 1
        yield table(law, names, limits, rows, 0, noise, number)


def outliers(every: int, offset: int, limit: dict[str, float | int | None], verbose: bool) -> None:
    """Count laws chosen and rows left out."""
    count: Counter[tuple[str, str]] = Counter()
    for number, one in enumerate(outlier_tables()):
        if number % every != offset:
            continue
        began = time.monotonic()
        found = solve_dataset(dataset_from_arrays(one.inputs, one.target, names=list(one.names)), **limit)
        took = time.monotonic() - began
        assert found.best is not None
        error = evaluate(found.best.expression, one.inputs) - one.truth
        share = float(np.sqrt(np.mean(error**2)) / one.truth.std())
        law = parse(one.law, tuple(one.names))
        right = (
            share < max(NEAR, 0.7 * one.noise) and complexity(found.best.expression) <= complexity(law) + 4
        )
        lost = len(one.target) - found.rows
        group = f"{len(one.wrong)} outliers" + (
            ", peaked" if one.law in {law for law, *_ in PEAKED_LAWS} else ""
        )
        for key in (group, f"{group}, noise {one.noise:g}", f"{group}, {len(one.target)} rows"):
            count[key, "tables"] += 1
            count[key, "law"] += right
            count[key, "rows"] += lost > 0
            count[key, "seconds"] += took  # type: ignore[assignment]
        if verbose:
            print(
                number,
                one.law,
                len(one.target),
                sorted(one.wrong),
                one.noise,
                "->",
                found.best.text,
                f"{share:.3g}",
                "right" if right else "WRONG",
                "lost",
                lost,
                f"{took:.1f}s",
                flush=True,
            )
    for key in sorted({key for key, _ in count}):
        tables = count[key, "tables"]
        print(
            f"{key:32s} tables {tables:4d}  law {count[key, 'law']:4d}  rows left out {count[key, 'rows']:4d}"
            f"  {count[key, 'seconds'] / tables:.1f} s"
        )


def forms(every: int, offset: int, limit: dict[str, float | int | None], verbose: bool) -> None:
    """Count Pareto tables that hold the law."""
    count: Counter[tuple[str, str]] = Counter()
    grid = itertools.product(FORM_LAWS, (9, 14, 26, 60), (0.005, 0.03, 0.1), OPERATORS)
    seed = 0
    for number, ((text, limits), rows, noise, operators) in enumerate(grid):
        law = parse(text, ("x",))

        one = table(text, "x", limits, rows, 0, noise, number)
        wanted = Problem(one.inputs, one.target, ("x",), operators=frozenset(operators or Problem.operators))
        if operators is not None and not wanted.allows(law):
            continue
        seed += 1
        if seed % every != offset:
            continue
        fit = refit(free(law), one.inputs, one.target)
        best = evaluate(fit.expression, one.inputs)
        rmse = float(np.sqrt(np.mean((one.target - best) ** 2)))
        began = time.monotonic()
        found = solve_dataset(
            dataset_from_arrays(one.inputs, one.target, names=["x"]), **limit, operators=operators
        )
        took = time.monotonic() - began
        shown = covered = False
        for row in found.pareto:
            apart = float(np.sqrt(np.mean((evaluate(row.expression, one.inputs) - best) ** 2)))
            simple = row.complexity <= complexity(law)
            shown |= simple and apart < SAME * rmse
            covered |= simple and row.rmse <= AS_GOOD * rmse
        for key in (text, f"noise {noise:g}", f"{rows} rows", "all", " ".join(operators or ("default",))):
            count[key, "tables"] += 1
            count[key, "shown"] += shown
            count[key, "covered"] += shown or covered
            count[key, "seconds"] += took  # type: ignore[assignment]
        if verbose and not shown:
            print(
                number,
                text,
                rows,
                noise,
                operators,
                f"{rmse:.4g}",
                "covered" if covered else "MISSING",
                f"{took:.1f}s",
                [(row.text, round(row.rmse, 5)) for row in found.pareto],
                flush=True,
            )
    for key in sorted({key for key, _ in count}):
        tables = count[key, "tables"]
        print(
            f"{key:36s} tables {tables:4d}  shown {count[key, 'shown']:4d}  shown or dominated "
            f"{count[key, 'covered']:4d}  {count[key, 'seconds'] / tables:.1f} s"
        )


def main() -> None:
    """Run one of the two."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["outliers", "forms"])
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--offset", type=int, default=0)
    parser.add_argument("--time", type=float, default=5.0)
    parser.add_argument("--steps", type=int, help="instead of --time, for results that repeat")
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    limit = {"time": given.time} if given.steps is None else {"time": None, "steps": given.steps}
    (outliers if given.what == "outliers" else forms)(given.every, given.offset, limit, given.verbose)


if __name__ == "__main__":
    main()
