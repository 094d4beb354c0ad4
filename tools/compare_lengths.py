"""Which laws of a result file were not found, and which are not told by their tables.

    python tools/compare_lengths.py docs/results/targets.jsonl --noise 0.1 [--rows 1000] [--suite fsred]

For each law whose form was missed: the description length, in nats, of the law, its constants fitted to the
table it was missed on, and of the answer. Where the law's is shorter the search did not come across it; where
the answer's is, no choice among all formulas by description length would have told the law.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks_feynman.results import read_results
from benchmarks_feynman.sampling import sample
from benchmarks_feynman.suites import select
from benchmarks_feynman.tasks import Task
from physdiffuser.data import dataset_from_arrays
from physdiffuser.expressions import Expression, Number, evaluate, parse
from physdiffuser.expressions.tree import substitute
from physdiffuser.fitting import refit
from physdiffuser.noise.reweighting import reweight
from physdiffuser.selection.description_length import DescriptionLength

# Numbers of a law that are written as they are in nature, and not measured.
_MAX_EXACT, _MAX_DENOMINATOR = 12, 3


def measured(node: Expression) -> Expression | None:
    """A number that has to be fitted, as such; None for small exact ones and for all other nodes."""
    if not isinstance(node, Number):
        return None
    value = node.value
    exact = not isinstance(value, float) or value.is_integer()
    simple = isinstance(value, float) or value.denominator <= _MAX_DENOMINATOR
    return None if exact and simple and abs(value) <= _MAX_EXACT else Number(float(value))


def lengths(result: dict[str, Any]) -> tuple[float, float]:
    """Description lengths of the law and of the answer on the table that was solved."""
    (law,) = select([result["suite"]], [result["id"]])
    task = Task.from_document(result)
    rows, dummy = task.settings.rows_for(law), task.settings.dummy_for(law)
    table = sample(law, rows=rows, seed=task.seed, noise=task.noise, dummy=dummy)
    whole = dataset_from_arrays(table.inputs, table.target, names=table.names, target_name=table.output)
    dataset = reweight(whole, "auto", "auto").dataset
    weights = np.ones(dataset.rows) if dataset.weights is None else dataset.weights / dataset.weights.mean()
    spread = float(
        np.average((dataset.target - np.average(dataset.target, weights=weights)) ** 2, weights=weights)
    )

    def length(expression: Expression) -> float:
        with np.errstate(all="ignore"):
            squares = (dataset.target - evaluate(expression, dataset.inputs)) ** 2
        loss = float(np.average(squares, weights=weights)) / spread
        return DescriptionLength(dataset.rows, dataset.inputs.shape[1]).length(expression, loss)

    truth = parse(law.text, table.names)
    loose = substitute(truth, measured)
    fitted = refit(loose, dataset.inputs, dataset.target, weights=dataset.weights).expression
    shortest = min(length(form) for form in (truth, loose, fitted))
    answer = parse(result["expression"], table.names)
    # A fitted number that happens to be a half of a whole one is read as exact.
    return shortest, min(length(answer), length(substitute(answer, measured)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each law that was missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--noise", type=float, default=0.01)
    parser.add_argument("--rows", type=int, help="as asked for when the tables were solved")
    parser.add_argument("--suite", default="fsred")
    chosen = parser.parse_args(arguments)
    print("| law | of the law | of the answer | |\n|---|---|---|---|")
    for result in read_results(chosen.results).results:
        asked = result["suite"], result["noise"], result["rows"], result["system"]
        if asked != (chosen.suite, chosen.noise, chosen.rows, "physdiffuser") or result["form"]:
            continue
        if result["units"] or not result["expression"]:
            continue
        law, answer = lengths(result)
        verdict = "not found" if law < answer - 0.5 else "not told by the table"
        print(f"| {result['id']} | {law:.1f} | {answer:.1f} | {verdict} |", flush=True)


if __name__ == "__main__":
    main()
