"""How often laws are found with and without two true constraints: own laws, few rows and much noise.

`--laws easy` are 20 laws whose rows show the whole shape. Of the 20 of `--laws hard` the rows show a part:
the place of a constraint, or the limit, lies outside of the table, and other forms fit the rows as well.

A law counts as recovered if the form found, its numbers but for exponents fitted anew, meets noise-free rows
of the law to a relative loss of 1e-8 and has at most one number more than the law. Violations of the answers
are counted at points that the search has not seen.

    python tools/constraint_benchmark.py --laws easy --seed 0 --steps 20
    python tools/constraint_benchmark.py --laws hard --rows 20 --noise 0.1 --seed 0 --steps 20
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from physdiffuser import solve
from physdiffuser.constraints.reading import read_constraints
from physdiffuser.core.solution import Solution
from physdiffuser.data.arrays import dataset_from_arrays
from physdiffuser.expressions import Apply, Expression, Number, Parameter, evaluate, parse
from physdiffuser.expressions.tree import substitute, walk
from physdiffuser.fitting import fit_constants

FloatArray = npt.NDArray[np.float64]
SAME = 1e-8
# Rows and noise, in deviations of the target.
SETTINGS = ((20, 0.05), (60, 0.15))


@dataclass(frozen=True)
class Law:
    """A law, the ranges of its columns, and two constraints that it satisfies."""

    formula: str
    ranges: Mapping[str, tuple[float, float]]
    constraints: Sequence[Mapping[str, Any]]

    @property
    def names(self) -> list[str]:
        """Of the columns."""
        return list(self.ranges)

    @property
    def tree(self) -> Expression:
        """The formula."""
        return parse(self.formula, self.names)

    def inputs(self, rows: int, seed: int) -> FloatArray:
        """Random rows, shape (rows, columns)."""
        random = np.random.default_rng([seed, sum(map(ord, self.formula))])
        return np.column_stack([random.uniform(*ends, rows) for ends in self.ranges.values()])


def at(place: Mapping[str, float], value: float) -> dict[str, Any]:
    """The constraint that the law has a value at a place."""
    return {"value": {"at": dict(place), "is": value}}


def far(column: str, value: float) -> dict[str, Any]:
    """The constraint that the law has a limit."""
    return {"limit": {"as": {column: float("inf")}, "is": value}}


X, XY = {"x": (0.2, 4.0)}, {"x": (0.3, 3.0), "y": (0.3, 3.0)}
LAWS = (
    Law("2.7*x/(1.3 + x)", X, ({"increasing": "x"}, at({"x": 0}, 0))),
    Law("5.1*exp(-0.8*x)", X, ({"decreasing": "x"}, far("x", 0))),
    Law("1.9*(1 - exp(-0.9*x))", X, ({"increasing": "x"}, at({"x": 0}, 0))),
    Law("3.2/(1 + 0.6*x**2)", X, ({"even": "x"}, far("x", 0))),
    Law("1.4*x*exp(-0.7*x)", X, (at({"x": 0}, 0), far("x", 0))),
    Law("2.2*sqrt(x)", X, ({"concave": "x"}, at({"x": 0}, 0))),
    Law("0.8*x**2 + 1.7", X, ({"even": "x"}, {"convex": "x"})),
    Law("tanh(0.9*x)", X, ({"odd": "x"}, far("x", 1))),
    Law("x**2/(2.5 + x**2)", X, ({"even": "x"}, far("x", 1))),
    Law("1/(1 + exp(3.1 - 1.9*x))", X, ({"increasing": "x"}, {"between": [0, 1]})),
    Law("2.3*log(1 + 1.1*x)", X, ({"increasing": "x"}, at({"x": 0}, 0))),
    Law("0.6*x**3 - 2.1*x", {"x": (-2.0, 2.5)}, ({"odd": "x"}, at({"x": 0}, 0))),
    Law("1.6*x*y/(x + y)", XY, ({"symmetric": ["x", "y"]}, {"increasing": "x"})),
    Law("0.9*x/y**2", XY, ({"increasing": "x"}, {"homogeneous": {"columns": ["x", "y"], "degree": -1}})),
    Law("sqrt(x**2 + y**2)", XY, ({"symmetric": ["x", "y"]}, {"convex": "x"})),
    Law("1.2*(x - y)/(x + y)", XY, ({"antisymmetric": ["x", "y"]}, {"increasing": "x"})),
    Law("2.4*exp(-0.5*x)*y", XY, ({"decreasing": "x"}, at({"y": 0}, 0))),
    Law("1.8*x*y**0.5", XY, ({"concave": "y"}, at({"x": 0}, 0))),
    Law("x/(0.7 + x + 0.4*y)", XY, ({"between": [0, 1]}, {"decreasing": "y"})),
    Law("0.5*x*y**2", XY, ({"even": "y"}, {"odd": "x"})),
)

# Regions beyond the rows, in which the constraints are to hold.
LOW, HIGH, WIDE = {"x": [0.0, 2.0]}, {"x": [0.5, 20.0]}, {"x": [0.0, 20.0]}
HARD = (
    Law("3.1*x/(2.4 + x)", {"x": (0.8, 2.5)}, (at({"x": 0}, 0), {"concave": "x", "region": WIDE})),
    Law("2.2*(1 - exp(-0.6*x))", {"x": (0.6, 2.2)}, (at({"x": 0}, 0), far("x", 2.2))),
    Law("4.3*exp(-0.5*x)", {"x": (0.5, 2.0)}, (far("x", 0), at({"x": 0}, 4.3))),
    Law("1.7/(1 + 0.4*x**2)", {"x": (0.5, 2.2)}, ({"even": "x"}, far("x", 0))),
    Law("2.6*x**2/(3.0 + x**2)", {"x": (0.6, 2.4)}, ({"even": "x"}, at({"x": 0}, 0))),
    Law("1.2*sin(0.8*x)", {"x": (0.3, 1.8)}, ({"odd": "x"}, {"between": [-1.2, 1.2], "region": WIDE})),
    Law("2.4*tanh(0.5*x)", {"x": (0.8, 2.6)}, ({"odd": "x"}, far("x", 2.4))),
    Law("1.6*cosh(0.7*x)", {"x": (0.5, 2.0)}, ({"even": "x"}, at({"x": 0}, 1.6))),
    Law("0.9*x*exp(-0.4*x)", {"x": (0.8, 3.0)}, (at({"x": 0}, 0), far("x", 0))),
    Law("1.8*log(1 + 0.9*x)", {"x": (0.8, 2.6)}, (at({"x": 0}, 0), {"concave": "x", "region": WIDE})),
    Law("2.1*sqrt(x + 0.8)", {"x": (0.5, 2.0)}, ({"concave": "x", "region": LOW}, at({"x": -0.8}, 0))),
    Law("5.2/(1.3 + x)", {"x": (0.5, 2.2)}, ({"convex": "x", "region": HIGH}, far("x", 0))),
    Law("1.3*x*y/(x + 2*y)", XY, ({"homogeneous": {"columns": ["x", "y"], "degree": 1}}, at({"x": 0}, 0))),
    Law("2.5*x*y/(1 + x*y)", XY, ({"symmetric": ["x", "y"]}, far("x", 2.5))),
    Law("1.1*x*exp(-0.6*y)", XY, ({"odd": "x"}, far("y", 0))),
    Law("0.7*(x**2 - y**2)/x", XY, ({"odd": "x"}, {"homogeneous": {"columns": ["x", "y"], "degree": 1}})),
    Law("2.3*exp(-0.35*x**2)", {"x": (0.4, 2.0)}, ({"even": "x"}, far("x", 0))),
    Law("0.8*x/(1 + 0.5*x**2)", {"x": (0.7, 2.6)}, ({"odd": "x"}, far("x", 0))),
    Law("2.0*x*exp(-0.3*x**2)", {"x": (0.5, 2.2)}, ({"odd": "x"}, far("x", 0))),
    Law("1.4*x/(1 + 0.6*y)", XY, (at({"x": 0}, 0), far("y", 0))),
)


def form_of(expression: Expression) -> tuple[Expression, int]:
    """The form with a parameter for each number that is no exponent, and how many there are."""
    count = 0

    def put(node: Expression) -> Expression | None:
        nonlocal count
        if isinstance(node, Apply) and node.operator == "pow" and isinstance(node.arguments[1], Number):
            return Apply("pow", (substitute(node.arguments[0], put), node.arguments[1]))
        if isinstance(node, Number) and abs(node.value) != 1:
            count += 1
            return Parameter(count - 1)
        return None

    return substitute(expression, put), count


def recovered(law: Law, found: Expression) -> bool:
    """Whether a formula has the form of the law."""
    form, count = form_of(found)
    most = sum(1 for node in walk(law.tree) if isinstance(node, Number) and abs(node.value) != 1)
    if count > most + 1:
        return False
    inputs = law.inputs(200, 10_000)
    fit = fit_constants(form, inputs, evaluate(law.tree, inputs), starts=64)
    return fit.loss < SAME


def violated(law: Law, found: Expression, inputs: FloatArray, spread: float) -> int:
    """How many constraints a formula violates at points that the search has not seen."""
    dataset = dataset_from_arrays(inputs, inputs[:, 0], names=law.names, target_name="target")
    count = 0
    for given in law.constraints:
        for one in read_constraints([given], dataset):
            fresh = replace(one.region, seed=1)
            for other in type(one).build(one.text, next(iter(given.values())), fresh):
                count += other.screen(found, spread) is not None
    return count


def run(law: Law, rows: int, noise: float, seed: int, steps: int, constrained: bool) -> dict[str, Any]:
    """Solve a table with or without constraints; a record of it."""
    inputs = law.inputs(rows, seed)
    target = evaluate(law.tree, inputs)
    target = target + noise * target.std() * np.random.default_rng([seed, 99]).normal(size=rows)
    constraints = law.constraints if constrained else None
    solution: Solution = solve(
        inputs, target, names=law.names, target="target", constraints=constraints, steps=steps
    )
    assert solution.best is not None
    found = solution.best.expression
    return {
        "law": law.formula,
        "rows": rows,
        "noise": noise,
        "seed": seed,
        "constraints": constrained,
        "recovered": recovered(law, found),
        "violated": violated(law, found, inputs, float(target.std())),
        "states": [one.state for one in solution.constraints],
        "expression": solution.best.text,
    }


def main() -> int:
    """Run the benchmark; one JSON line a run on stdout, the rates on stderr."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", default="0")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--laws", choices=("easy", "hard"), default="easy")
    parser.add_argument("--rows", type=int, help="instead of the two settings")
    parser.add_argument("--noise", type=float, help="of these rows")
    parser.add_argument("--only", choices=("with", "without"), help="only with or without constraints")
    chosen = parser.parse_args()
    laws = LAWS if chosen.laws == "easy" else HARD
    ways = (False, True) if chosen.only is None else (chosen.only == "with",)
    settings = SETTINGS if chosen.rows is None else ((chosen.rows, chosen.noise or 0.0),)
    for rows, noise in settings:
        records = []
        for seed in map(int, chosen.seed.split(",")):
            for law, constrained in itertools.product(laws, ways):
                record = run(law, rows, noise, seed, chosen.steps, constrained)
                print(json.dumps(record), flush=True)
                records.append(record)
        for constrained in ways:
            some = [record for record in records if record["constraints"] == constrained]
            rate = sum(record["recovered"] for record in some)
            broken = sum(record["violated"] for record in some)
            words = "with" if constrained else "without"
            print(
                f"{rows} rows, noise {noise:g}, {words} constraints: {rate} of {len(some)} recovered, "
                f"{broken} constraints violated",
                file=sys.stderr,
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
