"""How often the 95 % intervals of constants hold the true values.

    python tools/measure_coverage.py --tables 400 --seed 1 --results runs/coverage.jsonl
    python tools/measure_coverage.py --solve --tables 60 --seed 1 --results runs/coverage-solve.jsonl

Each table has one of the forms of `measure_constants.py` with arbitrary constants, a kind of errors, their
size (0.001 to 0.1) and 20 to 10,000 rows. Tables whose rows leave a constant uncertain by more than a third
are drawn again. Without `--solve` the true form is fitted, the noise model chosen and the constants fitted
again with it, by the functions that `solve` uses; with it the whole program runs from the true form.
True values are those that the constants of the answer take when they are refitted to rows without noise;
answers that are not exact then, and constants that were set to special values, are not counted.

The kinds of errors are those of the target, `stated` (the errors of the rows differ and are stated), `inputs`
(both inputs have errors of at most 0.03, within which the law is nearly a straight line, and they are stated
as well) and `ignored` (the same rows; only the errors of the target are stated).
"""

from __future__ import annotations

import argparse
import math
import os
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from resumed_runs import run_tables

from physdiffuser.core.problem import Problem
from physdiffuser.core.solution import ConstantEstimate
from physdiffuser.data.arrays import dataset_from_arrays
from physdiffuser.data.checks import mean_error, weights_of
from physdiffuser.data.dataset import Dataset
from physdiffuser.expressions import Expression, evaluate, to_text
from physdiffuser.expressions.tree import bind, distinct_constants
from physdiffuser.finalize.constants.statements import constants_of
from physdiffuser.fitting import fit_constants, refit
from physdiffuser.fitting.effective_variance import effective_fit
from physdiffuser.fitting.uncertainty import uncertainty
from physdiffuser.noise.models import KINDS as NOISE_KINDS
from physdiffuser.noise.models import fit_noise_model
from physdiffuser.noise.reweighting import ENOUGH_ROWS
from physdiffuser.pipeline import solve_dataset
from physdiffuser.search.noise_inference import POLICY

KINDS = ("constant", "relative", "poisson", "mixed", "student", "stated", "inputs", "ignored")
ROWS = (20, 50, 200, 1_000, 10_000)
# The answer has the right form if refitting leaves less than this share of the target.
EXACT = 1e-7


# Tables with a constant that is less certain, relative to its value, are drawn again.
CERTAIN = 1 / 3
# Largest error of an input, and the curvature within it relative to the slope.
LARGEST, CURVED = 0.03, 0.1


@dataclass(frozen=True)
class Drawn:
    """A law and its rows."""

    skeleton: Expression
    values: list[float]
    inputs: np.ndarray
    clean: np.ndarray
    level: float


def drawn(number: int, seed: int) -> Drawn:
    """A law with constants that its rows determine."""
    from measure_constants import FORMS, draw, table

    rng = np.random.default_rng([seed, number])
    rows = ROWS[number % len(ROWS)]
    while True:
        skeleton, values = draw(str(rng.choice(FORMS)), False, rng)
        made = table(skeleton, values, rows, 0.0, rng)
        level = math.exp(rng.uniform(math.log(0.001), math.log(0.1)))
        if made is None:
            continue
        size = level * float(np.sqrt(np.mean(np.square(made[1]))))
        known = uncertainty(skeleton, np.array(values), *made, sigma=size)
        if (known.standard_errors < CERTAIN * np.abs(values)).all():
            return Drawn(skeleton, values, made[0], made[1], level)


def input_error(law: Drawn) -> float:
    """Error of both inputs, within which the law is nearly a straight line in nearly all rows."""
    form = bind(law.skeleton, law.values)
    error = LARGEST
    while error > 1e-6:
        curved = np.zeros(len(law.clean), bool)
        for column in range(law.inputs.shape[1]):
            step = np.zeros(law.inputs.shape[1])
            step[column] = error
            high, low = (evaluate(form, law.inputs + sign * step) for sign in (1, -1))
            curved |= ~(np.abs(high + low - 2 * law.clean) <= CURVED * np.abs(high - low))
        if curved.mean() < 0.05:
            return error
        error /= 2
    return error


def with_errors(law: Drawn, kind: str, rng: np.random.Generator) -> Dataset:
    """The rows with errors of one kind."""
    from measure_noise_models import errors_of

    inputs, stated, input_errors = law.inputs, None, None
    if kind in ("stated", "inputs", "ignored"):
        size = law.level * float(np.sqrt(np.mean(np.square(law.clean))))
        stated = size * np.exp(rng.uniform(-1.0, 0.5, len(law.clean)))
        target = law.clean + stated * rng.standard_normal(len(law.clean))
        if kind != "stated":
            input_errors = np.full_like(inputs, input_error(law))
            inputs = inputs + input_errors * rng.standard_normal(inputs.shape)
    else:
        target = law.clean + errors_of(kind, law.clean, law.level, rng)
    dataset = dataset_from_arrays(inputs, target, names=("x", "y"), target_name="z")
    return replace(
        dataset,
        stated_errors=stated,
        weights=None if stated is None else weights_of(stated),
        input_errors=input_errors if kind == "inputs" else None,
    )


def fitted(law: Drawn, dataset: Dataset) -> tuple[Expression, tuple[ConstantEstimate, ...]]:
    """The true form with its constants, fitted as the program does in the end."""
    inputs, target = dataset.inputs, dataset.target
    loss, sigma, weights = "squared", None, dataset.weights
    form = fit_constants(
        law.skeleton, inputs, target, weights=weights, initial=law.values, starts=1
    ).expression
    if dataset.input_errors is not None:
        fit = effective_fit(form, inputs, target, dataset.input_errors, dataset.stated_errors)
        assert fit is not None
        form, errors = fit.expression, np.sqrt(fit.variance)
        weights, sigma = weights_of(errors), mean_error(errors)
    elif dataset.stated_errors is not None:
        sigma = mean_error(dataset.stated_errors)
    else:
        signed = ("relative", "poisson") if target.min() <= 0 <= target.max() else ()
        few = ("robust",) if dataset.rows < ENOUGH_ROWS else ()
        prediction = evaluate(form, inputs)
        models = [
            fit_noise_model(kind, target, prediction, len(law.values))
            for kind in NOISE_KINDS
            if kind not in (*signed, *few)
        ]
        best = min(models, key=lambda model: model.nats)
        if best.nats < models[0].nats - POLICY.decisive:
            loss = "robust" if best.kind == "robust" else "squared"
            weights = None if best.kind == "robust" else best.weights(prediction)
            form = refit(form, inputs, target, weights=weights, loss=loss).expression  # type: ignore[arg-type]
    problem = Problem(inputs, target, ("x", "y"), weights=weights, sigma=sigma, loss=loss)  # type: ignore[arg-type]
    return form, constants_of(form, problem)[0]


def one(number: int, seed: int, kinds: tuple[str, ...], solve: bool) -> list[dict[str, Any]]:
    """Intervals of one table for each kind of errors."""
    law = drawn(number, seed)
    text = to_text(bind(law.skeleton, law.values), ("x", "y"))
    lines = []
    for kind in kinds:
        dataset = with_errors(law, kind, np.random.default_rng([seed, number, 1]))
        line: dict[str, Any] = {
            "number": number,
            "law": text,
            "rows": dataset.rows,
            "level": law.level,
            "errors": kind,
        }
        if solve:
            answer = solve_dataset(dataset, steps=2, plugins=False, initial=[text]).best
            assert answer is not None
            form, constants = answer.expression, answer.constants
        else:
            form, constants = fitted(law, dataset)
        truth = true_values(form, law.inputs, law.clean)
        if truth is not None:
            free = [constant for constant in constants if not constant.is_set]
            line["constants"] = [
                {"truth": true, "value": constant.value, "low": constant.low, "high": constant.high}
                for true, constant in zip(truth, free, strict=True)
            ]
        lines.append(line | {"answer": to_text(form, ("x", "y"), 6)})
    return lines


def true_values(expression: Expression, inputs: np.ndarray, clean: np.ndarray) -> list[float] | None:
    """The values of the constants of a formula on rows without noise; None if it is not the law."""
    skeleton, values = distinct_constants(expression)
    if not values:
        return None
    fit = fit_constants(skeleton, inputs, clean, initial=values, starts=1, iterations=200)
    left = np.abs(evaluate(bind(skeleton, list(fit.parameters)), inputs) - clean).max()
    return list(fit.parameters) if left < EXACT * np.abs(clean).max() else None


def summary(lines: list[dict[str, Any]]) -> str:
    """Coverage by kind of errors and number of rows."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for line in lines:
        for rows in (str(line["rows"]), "all"):
            count = counts.setdefault((line["errors"], rows), Counter())
            count["tables"] += 1
            for constant in line.get("constants", ()):
                if constant["low"] is None:
                    count["without"] += 1
                    continue
                count["constants"] += 1
                count["inside"] += constant["low"] <= constant["truth"] <= constant["high"]
    columns = [*map(str, ROWS), "all"]
    text = ["| errors | " + " | ".join(f"{rows} rows" if rows != "all" else rows for rows in columns) + " |"]
    text.append("|---" * (len(columns) + 1) + "|")
    for kind in dict.fromkeys(line["errors"] for line in lines):
        cells = [counts.get((kind, rows), Counter()) for rows in columns]
        shown = [
            f"{100 * cell['inside'] / max(cell['constants'], 1):.1f} ({cell['constants']})" for cell in cells
        ]
        text.append(f"| {kind} | " + " | ".join(shown) + " |")
    return "\n".join(text)


def main() -> None:
    """Run the tables that are not in the results file, and print the coverage."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--solve", action="store_true", help="run the whole program")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--results", type=Path, required=True)
    options = parser.parse_args()
    work = partial(one, seed=options.seed, kinds=tuple(options.kinds.split(",")), solve=options.solve)
    print(summary(run_tables(work, options.tables, options.results, options.jobs)))


if __name__ == "__main__":
    main()
