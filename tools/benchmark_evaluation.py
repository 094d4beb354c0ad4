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
import functools
import importlib.util
import math
import platform
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from physdiffuser.expressions import Apply, Expression, Number, Variable, evaluate
from physdiffuser.expressions.evaluation.batch import Evaluator, evaluate_many
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
    values = evaluate_many(expressions, inputs)
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


def compiled(known: bool) -> Contender:
    """`physdiffuser.expressions.evaluation.batch` by its compiled kernels.

    `known`: the trees were translated to programs before the clock starts, as pyoperon's are; otherwise those
    of the parents only.
    """

    def prepare(expressions: Sequence[Expression], before: Sequence[Expression], inputs: Array) -> Run:
        evaluator = Evaluator(inputs, compile_after=0)
        out = np.empty((len(expressions), inputs.shape[0]))
        evaluator(expressions, out)

        def run() -> object:
            return evaluator(expressions, out)

        def reset() -> None:
            if not known:
                evaluator.forget_programs()
                evaluator(before)

        run.reset = reset  # type: ignore[attr-defined]
        return run

    return prepare


def batched(dtype: type[np.floating[Any]]) -> Contender:
    """`physdiffuser.expressions.evaluation.batch` by numpy, its cache warm with the parents only."""

    def prepare(expressions: Sequence[Expression], before: Sequence[Expression], inputs: Array) -> Run:
        evaluator = Evaluator(inputs, dtype, compile_after=math.inf)
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


@functools.cache
def _numba_kernel() -> Any:
    import numba

    def kernel(codes, first, second, columns, constants, roots, values, buffer):  # type: ignore[no-untyped-def]
        width = buffer.shape[1]
        lead = columns.shape[0] + constants.shape[0]
        for index in range(constants.shape[0]):
            buffer[columns.shape[0] + index, :] = constants[index]
        for low in range(0, values.shape[1], width):
            count = min(width, values.shape[1] - low)
            for index in range(columns.shape[0]):
                buffer[index, :count] = columns[index, low : low + count]
            for step in range(codes.shape[0]):
                left, right, out = buffer[first[step]], buffer[second[step]], buffer[lead + step]
                code = codes[step]
                for row in range(count):
                    if code == 0:
                        out[row] = left[row] + right[row]
                    elif code == 1:
                        out[row] = left[row] - right[row]
                    elif code == 2:
                        out[row] = left[row] * right[row]
                    elif code == 3:
                        out[row] = left[row] / right[row]
                    elif code == 4:
                        out[row] = math.exp(left[row])
                    elif code == 5:
                        out[row] = math.log(left[row])
                    elif code == 6:
                        out[row] = math.sin(left[row])
                    elif code == 7:
                        out[row] = math.cos(left[row])
                    elif code == 8:
                        out[row] = math.sqrt(left[row])
                    else:
                        out[row] = math.tanh(left[row])
            for index in range(roots.shape[0]):
                values[index, low : low + count] = buffer[roots[index], :count]

    start = time.perf_counter()
    compiled = numba.njit(error_model="numpy")(kernel)
    whole, column = np.zeros(1, np.int64), np.ones((COLUMNS, 4))
    compiled(whole, whole, whole, column, np.ones(1), whole, np.empty((1, 4)), np.ones((COLUMNS + 2, 256)))
    print(f"numba: {time.perf_counter() - start:.1f} s to compile, before the clock starts", file=sys.stderr)
    return compiled


def with_numba(expressions: Sequence[Expression], before: Sequence[Expression], inputs: Array) -> Run:
    """Trees flattened to instructions, distinct subtrees once, run by a compiled loop over row blocks."""
    kernel = _numba_kernel()
    columns = np.ascontiguousarray(inputs.T)

    def run() -> object:
        values = np.empty((len(expressions), inputs.shape[0]))
        # Some fifty expressions at a time, so that their values stay in cache.
        for start in range(0, len(expressions), 50):
            part = expressions[start : start + 50]
            codes, first, second, constants, roots = _instructions(part)
            buffer = np.empty((COLUMNS + constants.size + codes.size, 256))
            kernel(codes, first, second, columns, constants, roots, values[start : start + len(part)], buffer)
        return values

    return run


def _instructions(expressions: Sequence[Expression]) -> tuple[npt.NDArray[Any], ...]:
    codes: list[int] = []
    sources: list[tuple[int, int]] = []
    constants: list[float] = []
    known: dict[Expression, int] = {}

    def place(node: Expression) -> int:
        if isinstance(node, Variable):
            return node.index
        slot = known.get(node)
        if slot is not None:
            return slot
        if isinstance(node, Number):
            constants.append(float(node.value))
            slot = -len(constants)  # after the columns, once their number is known
        else:
            assert isinstance(node, Apply)
            first = place(node.arguments[0])
            pair = (first, place(node.arguments[1]) if len(node.arguments) == 2 else first)
            slot = COLUMNS + len(codes)
            codes.append((*BINARY, *UNARY).index(node.operator))
            sources.append(pair)
        known[node] = slot
        return slot

    roots = np.array([place(one) for one in expressions])
    pairs = np.array(sources).reshape(-1, 2)
    for slots in (roots, pairs):
        later, constant = slots >= COLUMNS, slots < 0
        slots[later] += len(constants)
        slots[constant] = COLUMNS - 1 - slots[constant]
    return np.array(codes), pairs[:, 0].copy(), pairs[:, 1].copy(), np.array(constants), roots


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
    "compiled float64": (compiled(known=True), None),
    "compiled (new trees)": (compiled(known=False), None),
    "numpy float64": (batched(np.float64), None),
    "numpy float32": (batched(np.float32), None),
    "pyoperon float32": (with_pyoperon, "pyoperon"),
    "numba float64": (with_numba, "numba"),
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
