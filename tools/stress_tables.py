"""Reads thousands of malformed tables of every format and counts what must not happen.

    python tools/stress_tables.py --cases 10000 --solved 0.005

Every case is made from its seed: text tables (comma, tab, semicolon, gzip, several encodings), workbooks,
Parquet files, tables with weights, tables with a file of units. It is read in this process. Where the reader
accepts it, the numbers are compared with a naive second reading. A share of the cases goes through the whole
program, `physdiffuser solve` with a few steps, and its exit code is compared with what the reader said.

Exit code 1 when anything was counted. `--seed N --cases 1` repeats a single case.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "data")]

from table_cases import TableCase, make_case, values_of  # noqa: E402

from physdiffuser.data import Dataset, load_dataset  # noqa: E402
from physdiffuser.data.statements.unit_files import load_units  # noqa: E402
from physdiffuser.errors import PhysdiffuserError  # noqa: E402

LONGEST_SECONDS = 10.0
SOLVING_SECONDS = 60.0
FAULTS = ("traceback", "hang", "silent corruption", "wrong exit code")


class Hang(BaseException):
    """A case took too long; no `except Exception` of the program may swallow it."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Interrupt what runs longer, where the system has such an alarm."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def ring(number: int, frame: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def read(case: TableCase) -> Dataset | PhysdiffuserError:
    """The dataset, or the error that the user sees."""
    try:
        data = load_dataset(str(case.path), **case.options)
        return data if case.units is None else load_units(case.units, data).attach(data)
    except PhysdiffuserError as error:
        return error


def same_numbers(case: TableCase, data: Dataset) -> bool:
    """Whether a naive second reading gives the same numbers."""
    found = values_of(data)
    expected = case.expected(data)
    return bool(np.isfinite(found).all()) and (expected is None or np.array_equal(found, expected))


def solve(case: TableCase) -> int:
    """Exit code of the whole program with a few steps."""
    from physdiffuser.cli import main

    options = [word for name, value in case.options.items() for word in (f"--{name}", value)]
    if case.units is not None:
        options += ["--units", str(case.units)]
    command = [
        "solve",
        str(case.path),
        "--steps",
        "3",
        "--generators",
        "sparse",
        "--no-plugins",
        "--json",
        *options,
    ]
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        return main(command)


def check_case(seed: int, folder: Path, solved: bool) -> tuple[str, str]:
    """Read one case.

    Returns
    -------
    outcome, fault
        `KIND accepted` or `KIND refused`, and one of `FAULTS` or nothing.
    """
    case = make_case(seed, folder)
    outcome = f"{case.kind} accepted"
    try:
        with time_limit(LONGEST_SECONDS):
            result = read(case)
            if isinstance(result, PhysdiffuserError):
                outcome = f"{case.kind} refused"
                if not str(result).isprintable():
                    return outcome, "traceback"
            elif not same_numbers(case, result):
                return outcome, "silent corruption"
        if solved:
            allowed = (result.exit_code,) if isinstance(result, PhysdiffuserError) else (0, 5)
            with time_limit(SOLVING_SECONDS):
                if solve(case) not in allowed:
                    return outcome, "wrong exit code"
    except Hang:
        return outcome, "hang"
    except AssertionError:  # the second reading does not accept what the program accepted
        return outcome, "silent corruption"
    except Exception:
        traceback.print_exc()
        return outcome, "traceback"
    finally:
        for path in (case.path, case.units):
            if path is not None:
                path.unlink(missing_ok=True)
    return outcome, ""


def stress(cases: int, seed: int, solved: float) -> tuple[Counter[str], list[tuple[int, str]]]:
    """Run cases from `seed` on; returns how they ended, and the seed and kind of each fault."""
    outcomes: Counter[str] = Counter()
    faults: list[tuple[int, str]] = []
    with tempfile.TemporaryDirectory() as name:
        for number in range(seed, seed + cases):
            whole = random.Random(f"solve {number}").random() < solved
            outcome, fault = check_case(number, Path(name), whole)
            outcomes[outcome] += 1
            outcomes["solved"] += whole
            if fault:
                faults.append((number, fault))
    return outcomes, faults


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first case")
    parser.add_argument("--solved", type=float, default=0.005, help="share that goes through `solve`")
    options = parser.parse_args()
    started = time.monotonic()
    outcomes, faults = stress(options.cases, options.seed, options.solved)
    for outcome, count in sorted(outcomes.items()):
        print(f"{outcome}: {count:,}")
    for fault in FAULTS:
        print(f"{fault}: {sum(kind == fault for _, kind in faults)}")
    for seed, fault in faults[:20]:
        print(f"seed {seed}: {fault}")
    print(f"{options.cases:,} cases in {time.monotonic() - started:.0f} s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
