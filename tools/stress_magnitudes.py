"""Solve tables of every magnitude with every option that changes computation, and report what goes wrong.

    python tools/stress_magnitudes.py [--cases 400] [--seed 0] [--only 17] [--learned]

Inputs and targets from 1e-320 to 1e306, with a few steps each, in one process. Reported are crashes,
generators and analyses that failed, numpy's warnings, runs longer than a limit, runs without an answer,
answers that are called verified and are wrong, formulas whose text does not give the values of the formula,
and simple exact laws that are not found.
"""

from __future__ import annotations

import argparse
import collections
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from physdiffuser.core.solution import Solution
from physdiffuser.errors import DataError, PhysdiffuserError
from physdiffuser.expressions import evaluate, parse
from physdiffuser.pipeline import solve
from physdiffuser.report.documents.json_document import document, document_text
from physdiffuser.report.text.terminal import render

FloatArray = npt.NDArray[np.float64]

# The clock ends a search of few steps that take long, far below the limit.
STEPS, TIME, SECONDS = 12, 20.0, 60.0
EXPONENTS = (
    -320,
    -310,
    -300,
    -250,
    -195,
    -160,
    -154,
    -100,
    -52,
    -30,
    0,
    30,
    52,
    100,
    153,
    160,
    200,
    250,
    300,
    306,
)
# Targets below it have few digits.
MIN_WITH_DIGITS = 1e-300
ROWS = (5, 12, 40, 100, 1500)
LAWS: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "u*w": lambda u, w: u * w,
    "u/w": lambda u, w: u / w,
    "u**2*w": lambda u, w: u * u * w,
    "sqrt(u*w)": lambda u, w: np.sqrt(u * w),
    "3*u": lambda u, w: 3 * u,
    "u + w": lambda u, w: u + w,
    "u**2 - 2*w": lambda u, w: u * u - 2 * w,
    "u*exp(-w)": lambda u, w: u * np.exp(-w),
}
GENERATORS = ("enumeration", "sparse", "evolution", "neighbours")
KINDS = (
    "plain",
    "plain",
    "plain",
    "noise",
    "negative",
    "zeros",
    "zero rows",
    "wide inputs",
    "wide target",
    "one other row",
    "nearly equal columns",
    "nearly constant column",
    "whole numbers",
)


@dataclass(frozen=True)
class Case:
    """One table and the options that it is solved with.

    Attributes
    ----------
    table
        The target is the last column, `y`.
    law
        Name of the law, None where the table has none that a search must find.
    truth
        Values of the law for the inputs of further rows, and these; None where there is no law.
    """

    number: int
    what: str
    table: pd.DataFrame
    options: dict[str, Any]
    law: str | None
    truth: tuple[FloatArray, FloatArray] | None


@dataclass
class Report:
    """What went wrong, by kind."""

    faults: dict[str, list[str]] = field(default_factory=lambda: collections.defaultdict(list))
    cases: int = 0
    sought: int = 0
    refused: int = 0
    slowest: tuple[float, int] = (0.0, 0)
    shown: bool = False

    def add(self, kind: str, case: Case, text: str) -> None:
        """Note a fault of a case."""
        fault = f"case {case.number}: {case.what} {_shown(case.options)}: {text}"
        self.faults[kind].append(fault)
        if self.shown:
            print(f"{kind}: {fault}", flush=True)


def _shown(options: dict[str, Any]) -> str:
    return str({key: value for key, value in options.items() if key not in ("steps", "time", "seed")})


def cases(count: int, seed: int, learned: bool = False) -> Iterator[Case]:
    """Random cases; equal seeds give equal cases."""
    for number in range(count):
        yield case(number, seed, learned)


def case(number: int, seed: int, learned: bool = False) -> Case:
    """One case by its number."""
    rng = np.random.default_rng([seed, number])
    law = str(rng.choice(list(LAWS)))
    kind = KINDS[int(rng.integers(len(KINDS)))]
    rows = int(rng.choice(ROWS, p=[0.1, 0.2, 0.3, 0.3, 0.1]))
    exponents = [int(power) for power in rng.choice(EXPONENTS, 3)]
    if rng.random() < 0.3:
        exponents[1] = exponents[0]
    columns = rng.uniform(1, 5, (2, rows + 50))
    if kind == "whole numbers":
        columns = np.round(columns * 2.0**60)
        exponents[:2] = [0, 0]
    if kind == "negative":
        columns[0] *= rng.choice([-1, 1], rows + 50)
        law = "u*w" if law == "sqrt(u*w)" else law
    if kind == "wide inputs":
        columns = 10 ** rng.uniform(-150, 150, (2, rows + 50))
        exponents[:] = [0, 0, 0]
        law = str(rng.choice(["u*w", "u/w", "3*u"]))
    if kind == "nearly equal columns":
        columns[1] = columns[0] * (1 + 1e-15 * rng.standard_normal(rows + 50))
    if kind == "nearly constant column":
        columns[1] = 3 * (1 + 1e-15 * rng.standard_normal(rows + 50))
    with np.errstate(all="ignore"):
        target = LAWS[law](*(columns / 2.0**60 if kind == "whole numbers" else columns))
        if kind == "wide target":
            target = np.clip(10 ** (40.0 * (columns[0] * columns[1] - 12)), 1e-300, 1e300)
            exponents[2] = 0
        u, w = (_times(column, power) for column, power in zip(columns, exponents[:2], strict=True))
        y = _times(target, exponents[2])
    exact = kind in ("plain", "negative", "whole numbers") and min(exponents) >= -300 and rows >= 40
    if kind == "noise":
        y = y * (1 + 0.01 * rng.standard_normal(len(y)))
    if kind == "zeros":
        y[:rows][rng.random(rows) < 0.1] = 0.0
        u[:rows][rng.random(rows) < 0.1] = 0.0
    if kind == "zero rows":
        some = rng.random(len(y)) < 0.1
        u[some], w[some], y[some] = 0.0, 0.0, 0.0
    if kind == "one other row":
        y = np.full(len(y), y[0])
        y[rows // 2] *= 2
    table = pd.DataFrame({"u": u[:rows], "w": w[:rows], "y": y[:rows]})
    options = _options(rng, table, rows, learned)
    what = f"{law}, {kind}, {rows} rows, u 1e{exponents[0]}, w 1e{exponents[1]}, y 1e{exponents[2]}"
    full = exact and "generators" not in options and "operators" not in options
    further = (np.stack([u[rows:], w[rows:]], axis=1), y[rows:])
    lawful = kind in ("plain", "negative", "noise", "whole numbers", "wide inputs")
    return Case(number, what, table, options, law if full else None, further if lawful else None)


def _times(values: FloatArray, power: int) -> FloatArray:
    """Values times a power of ten that may be no double itself; at most the largest double."""
    most = np.finfo(float).max
    half = power // 2
    return np.clip(values * 10.0**half * 10.0 ** (power - half), -most, most)


def _options(rng: np.random.Generator, table: pd.DataFrame, rows: int, learned: bool) -> dict[str, Any]:
    """One or two options that change the computation."""
    y = table["y"].to_numpy()

    def weighted(power: float) -> dict[str, Any]:
        if "e" not in table:
            table.insert(0, "e", _times(rng.uniform(1, 3, rows), int(power)))
        return {}

    options: dict[str, Any] = {"steps": STEPS, "time": TIME, "seed": int(rng.integers(100))}
    choices: list[Callable[[], dict[str, Any]]] = [
        dict,
        lambda: {"noise_model": "relative"},
        lambda: {"loss": "robust"},
        lambda: {"noise": float(rng.choice([1e-12, 0.01, 0.5]))},
        lambda: {"weights": "e", **weighted(float(rng.choice([-300, -200, 0, 200, 300])))},
        lambda: {"errors": "e", **weighted(float(rng.choice([-300, -200, 0, 200, 300])))},
        lambda: {"errors": "e", **_sigma(table, y)},
        lambda: {"constants": {"G": 6.6743e-11, "k": 1e-200}},
        lambda: {"operators": ["add", "sub", "mul", "log"]},
        lambda: {"generators": [str(rng.choice((*GENERATORS, "autoregressive") if learned else GENERATORS))]},
        lambda: {"units": {"u": "m", "w": "s", "y": "m*s"}},
        lambda: {"max_complexity": 9},
        lambda: {"initial": ["u", "u*w + 1", "sqrt(u*u + w*w)"]},
    ]
    for _ in range(int(rng.integers(1, 3))):
        options |= choices[int(rng.integers(len(choices)))]()
    if "weights" in options and "errors" in options:
        del options["weights"]
    return options


def _sigma(table: pd.DataFrame, y: FloatArray) -> dict[str, Any]:
    if "e" not in table:
        table.insert(0, "e", np.maximum(np.abs(y) * 0.01, 5e-324))
    return {}


class _TooLong(BaseException):
    pass


def _alarm(number: int, frame: FrameType | None) -> None:
    raise _TooLong


def examine(case: Case, report: Report) -> Solution | None:
    """Solve one case and note what goes wrong."""
    report.cases += 1
    began = time.monotonic()
    signal.signal(signal.SIGALRM, _alarm)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    solution: Solution | None = None
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            options = dict(case.options)
            solution = solve(case.table, target="y", **options)
            render(solution)
            document_text(document(solution))
        for warning in caught:
            if issubclass(warning.category, RuntimeWarning):
                report.add("numpy warning", case, f"{warning.message} ({warning.filename}:{warning.lineno})")
    except _TooLong:
        report.add("too long", case, f"more than {SECONDS:g} s")
    except DataError as error:
        report.refused += 1
        if not _rightly_refused(case):
            report.add("refused", case, str(error))
    except PhysdiffuserError as error:
        report.add("refused", case, str(error))
    except Exception as error:
        report.add("crash", case, f"{type(error).__name__}: {error} at {_place(error)}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    report.slowest = max(report.slowest, (time.monotonic() - began, case.number))
    if solution is not None:
        judge(case, solution, report)
    return solution


def _rightly_refused(case: Case) -> bool:
    """Whether the table has nothing to solve, or relative errors of zero."""
    y, u = case.table["y"], case.table[["u", "w"]]
    relative = case.options.get("noise_model") == "relative" and bool((y == 0).any())
    return relative or bool((u.nunique() <= 1).all())


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    place = ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if "physdiffuser" in code.co_filename:
            place = f"{code.co_filename.rpartition('physdiffuser/')[2]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def judge(case: Case, solution: Solution, report: Report) -> None:
    """Note what is wrong with a solution."""
    for text in solution.warnings:
        if "failed" in text or "switched off" in text or "cannot be written" in text:
            report.add("failed part", case, text)
    best = solution.best
    if best is None or solution.status == "none":
        report.add("no answer", case, solution.status)
        return
    table = case.table[list(solution.columns)].to_numpy()
    for one in solution.pareto:
        with np.errstate(all="ignore"):
            value = evaluate(one.expression, table)
            again = evaluate(parse(one.text, solution.names, solution.known_constants), table)
            target = case.table["y"].to_numpy()
            scale = np.abs(target).max()
            rmse = float(np.sqrt(np.mean(np.square((value - target) / scale))))
        if not np.array_equal(value, again, equal_nan=True):
            report.add("text", case, f"{one.text} reads back as another formula")
        if not np.isfinite(value).all():
            report.add("not finite", case, one.text)
        elif (
            not {"weights", "errors", "noise_model"} & set(case.options)
            and not solution.warnings
            and scale > MIN_WITH_DIGITS
            and abs(rmse - one.rmse / scale) > 1e-3 * rmse + 1e-14
        ):
            report.add("rmse", case, f"{one.text}: {one.rmse / scale:g} printed, {rmse:g} computed")
    if case.truth is not None and best.verdict == "verified" and solution.columns == ("u", "w"):
        value, truth = evaluate(best.expression, case.truth[0]), case.truth[1]
        off = float(np.median(np.abs(value - truth) / np.maximum(np.abs(truth), 5e-324)))
        if not off < (0.05 if "noise" in case.what else 1e-3):
            report.add("verified and wrong", case, f"{best.text}: typical error {off:.2g}")
    if case.law is not None:
        report.sought += 1
        if solution.status != "exact":
            report.add("law not found", case, f"{best.text} ({solution.status})")


def main() -> None:
    """Run the cases and print the faults; exit with 1 if there are any but laws not found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="run this case only, and show its answer")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--kind", choices=sorted(set(KINDS)), help="tables of this kind only")
    parser.add_argument("--learned", action="store_true", help="the learned generator, too")
    options = parser.parse_args()
    report = Report(shown=True)
    numbers = range(options.first, options.cases) if options.only is None else [options.only]
    for number in numbers:
        one = case(number, options.seed, options.learned)
        if options.kind is not None and f", {options.kind}, " not in one.what:
            continue
        if options.only is not None:
            print(one.what, one.options, one.table.describe(), sep="\n")
        solution = examine(one, report)
        if options.only is not None and solution is not None:
            print(render(solution))
        if sys.stderr.isatty():
            print(f"\r{number + 1}/{options.cases}", end="", file=sys.stderr)
    for kind, texts in sorted(report.faults.items()):
        print(f"{kind}: {len(texts)}")
    print(
        f"{report.cases} cases, {report.sought} with a law to find, {report.refused} refused; "
        f"the slowest, case {report.slowest[1]}, took {report.slowest[0]:.1f} s"
    )
    sys.exit(any(kind != "law not found" for kind in report.faults))


if __name__ == "__main__":
    main()
