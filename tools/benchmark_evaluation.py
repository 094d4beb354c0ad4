"""Node evaluations per second per core: physdiffuser's batched evaluation beside other ways.

    python tools/benchmark_evaluation.py [--rows 100,1000] [--expressions N] [--repeats 7] [--only NAME,...]

Two sets of expressions, the same for every contender:

* `random`: trees drawn independently, which share hardly anything but their smallest subtrees;
* `offspring`: children by crossover of 300 parents that have been evaluated, which is what a search
  evaluates. A contender that remembers the parents' subtrees may use them.

Expressions that are not finite on 1,000 rows are left out. A node is an operator, a variable or a constant,
as written: the count is the same for every contender, whatever it saves. Each time is processor time, the
best of several, on one thread (set OMP_NUM_THREADS=1). Contenders whose package is missing are skipped, and
said so.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import platform
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from physdiffuser.expressions import Apply, Expression, Number, Variable, evaluate
from physdiffuser.expressions.batch import Evaluator
from physdiffuser.expressions.tree import size, substitute, walk

Array = npt.NDArray[np.float64]
Run = Callable[[], object]
# (expressions, expressions evaluated before the clock starts, inputs) -> what to time
Contender = Callable[[Sequence[Expression], Sequence[Expression], Array], Run]

UNARY = ("exp", "log", "sin", "cos", "sqrt", "tanh")
BINARY = ("add", "sub", "mul", "div")
COLUMNS = 5


def random_tree(rng: np.random.Generator, nodes: int) -> Expression:
    """A tree of about so many nodes."""
    if nodes <= 1:
        if rng.random() < 0.75:
            return Variable(int(rng.integers(COLUMNS)))
        return Number(float(rng.uniform(0.5, 3.0)))
    if nodes == 2 or rng.random() < 0.3:
        return Apply(str(rng.choice(UNARY)), (random_tree(rng, nodes - 1),))
    left = int(rng.integers(1, nodes - 1))
    arguments = (random_tree(rng, left), random_tree(rng, nodes - 1 - left))
    return Apply(str(rng.choice(BINARY)), arguments)


def finite(expressions: Sequence[Expression], inputs: Array) -> list[Expression]:
    """Those whose values are finite and of moderate size on all rows."""
    values = Evaluator(inputs)(expressions)
    with np.errstate(all="ignore"):
        good = np.isfinite(values).all(axis=1) & (np.abs(values).max(axis=1) < 1e6)
    return [one for one, keep in zip(expressions, good, strict=True) if keep]


def expression_sets(count: int) -> dict[str, tuple[list[Expression], list[Expression]]]:
    """Name to (expressions, expressions evaluated before)."""
    rng = np.random.default_rng(0)
    inputs = rng.uniform(1.0, 3.0, (1000, COLUMNS))
    trees: list[Expression] = []
    while len(trees) < count:
        drawn = [random_tree(rng, int(rng.integers(5, 25))) for _ in range(count)]
        trees += finite(drawn, inputs)
    parents = trees[:300]
    children: list[Expression] = []
    while len(children) < count:
        drawn = []
        for _ in range(count):
            parent, mate = (parents[int(rng.integers(len(parents)))] for _ in range(2))
            places, parts = list(walk(parent)), list(walk(mate))
            old, new = places[int(rng.integers(len(places)))], parts[int(rng.integers(len(parts)))]
            child = substitute(parent, lambda node, old=old, new=new: new if node is old else None)  # type: ignore[misc]
            if 5 <= size(child) <= 30:
                drawn.append(child)
        children += finite(drawn, inputs)
    return {"random": (trees[:count], []), "offspring": (children[:count], parents)}


def batched(dtype: type[np.floating[Any]]) -> Contender:
    """`physdiffuser.expressions.batch` by numpy, its cache warm with the parents only."""

    def prepare(expressions: Sequence[Expression], before: Sequence[Expression], inputs: Array) -> Run:
        evaluator = Evaluator(inputs, dtype)
        out = np.empty((len(expressions), inputs.shape[0]), dtype)

        def run() -> object:
            return evaluator(expressions, out)

        def reset() -> None:
            evaluator._forget()
            evaluator(before)

        run.reset = reset  # type: ignore[attr-defined]
        return run

    return prepare


def one_by_one(expressions: Sequence[Expression], before: Sequence[Expression], inputs: Array) -> Run:
    """`evaluate` in a loop."""
    return lambda: [evaluate(one, inputs) for one in expressions]


def with_torch(expressions: Sequence[Expression], before: Sequence[Expression], inputs: Array) -> Run:
    """The same walk with torch operations, float32, each distinct subtree once."""
    import torch

    torch.set_num_threads(1)
    columns = list(torch.from_numpy(np.ascontiguousarray(inputs.T.astype(np.float32))))
    functions = {name: getattr(torch, name) for name in (*UNARY, *BINARY)}

    def value(node: Expression, seen: dict[Expression, Any]) -> Any:
        if isinstance(node, Variable):
            return columns[node.index]
        if isinstance(node, Number):
            return torch.tensor(float(node.value))
        assert isinstance(node, Apply)
        known = seen.get(node)
        if known is None:
            known = functions[node.operator](*(value(argument, seen) for argument in node.arguments))
            seen[node] = known
        return known

    def run() -> object:
        with torch.inference_mode():
            seen: dict[Expression, Any] = {}
            return [value(one, seen).expand(inputs.shape[0]) for one in expressions]

    return run


def with_pyoperon(expressions: Sequence[Expression], before: Sequence[Expression], inputs: Array) -> Run:
    """pyoperon's `Evaluate`, tree by tree; its values are float32."""
    import pyoperon

    # The dataset keeps no reference to the array it views.
    table = np.asfortranarray(inputs.astype(np.float32))
    dataset = pyoperon.Dataset(table)
    hashes = {variable.Name: variable.Hash for variable in dataset.Variables}
    names = {"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "exp": "Exp", "log": "Log"}
    names |= {"sin": "Sin", "cos": "Cos", "sqrt": "Sqrt", "tanh": "Tanh"}

    def postfix(node: Expression) -> list[Any]:
        if isinstance(node, Variable):
            leaf = pyoperon.Node(pyoperon.NodeType.Variable, hashes[f"X{node.index + 1}"])
            leaf.Value = 1.0
            return [leaf]
        if isinstance(node, Number):
            return [pyoperon.Node.Constant(float(node.value))]
        assert isinstance(node, Apply)
        # Operon reads the first argument nearest to its operator.
        nodes = [one for argument in reversed(node.arguments) for one in postfix(argument)]
        return [*nodes, getattr(pyoperon.Node, names[node.operator])()]

    trees = []
    for one in expressions:
        tree = pyoperon.Tree(postfix(one))
        tree.UpdateNodes()
        trees.append(tree)
    table_of_functions = pyoperon.DispatchTable()
    rows = pyoperon.Range(0, inputs.shape[0])

    def run() -> object:
        _ = table  # alive as long as the dataset
        return [pyoperon.Evaluate(table_of_functions, tree, dataset, rows) for tree in trees]

    return run


CONTENDERS: dict[str, tuple[Contender, str | None]] = {
    "numpy float64": (batched(np.float64), None),
    "numpy float32": (batched(np.float32), None),
    "pyoperon float32": (with_pyoperon, "pyoperon"),
    "torch float32": (with_torch, "torch"),
    "evaluate one by one": (one_by_one, None),
}


def best_time(run: Run, repeats: int) -> tuple[float, object]:
    """Shortest of several runs, and the first result."""
    reset: Callable[[], None] = getattr(run, "reset", lambda: None)
    reset()
    result = run()
    best = math.inf
    for _ in range(repeats):
        reset()
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best, result


def check(name: str, result: object, expected: Array) -> None:
    """Every contender must give the same values, to its precision."""
    values = np.array([np.asarray(row, dtype=np.float64) for row in result])  # type: ignore[attr-defined]
    finite_rows = np.isfinite(expected).all(axis=1)
    values, expected = values[finite_rows], expected[finite_rows]
    error = np.abs(values - expected) / (np.abs(expected).max(axis=1, keepdims=True) + 1e-12)
    worst = float(np.nanmedian(error.max(axis=1)))
    if not worst < 1e-3:
        raise SystemExit(f"{name}: values differ from the reference (median of the worst errors {worst:.1e})")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="100,1000,10000")
    parser.add_argument("--expressions", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", default=",".join(CONTENDERS), help="names of contenders")
    options = parser.parse_args()
    sets = expression_sets(options.expressions)
    print(
        f"numpy {np.__version__}, {platform.processor() or platform.machine()}, 1e9 node evaluations a second"
    )
    sizes = [int(text) for text in options.rows.split(",")]
    print(f"{'':24}" + "".join(f"{kind + ' ' + str(rows):>17}" for kind in sets for rows in sizes))
    for name in options.only.split(","):
        contender, package = CONTENDERS[name]
        if package is not None and importlib.util.find_spec(package) is None:
            print(f"{name:24} skipped: {package} is not installed")
            continue
        line = f"{name:24}"
        for expressions, before in sets.values():
            nodes = sum(size(one) for one in expressions)
            for rows in sizes:
                inputs = np.random.default_rng(1).uniform(1.0, 3.0, (rows, COLUMNS))
                seconds, result = best_time(contender(expressions, before, inputs), options.repeats)
                check(name, result, np.array([evaluate(one, inputs) for one in expressions]))
                line += f"{nodes * rows / seconds / 1e9:17.2f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
