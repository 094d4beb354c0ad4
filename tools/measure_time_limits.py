"""How well `solve` keeps its time limit and answers Ctrl-C, on an idle and on a busy machine.

    python tools/measure_time_limits.py limits --times 2,5,15 --busy 0,4
    python tools/measure_time_limits.py interrupts --count 100 --busy 0,4

`--busy` is the number of busy processes per core that run at the same time.

`limits` runs the program on four tables: a clean law; noise in four columns; 20,000 rows; a noisy law for
which the network is asked. For each run it prints the seconds asked for, the seconds from start to end of the
process, whether the law was found, and how many constants of the chosen formula are exact.

`interrupts` sends SIGINT at random times after the start and prints the response times, the exit codes, and
how many runs printed a traceback. It exits with code 1 if there was a traceback or a wrong exit code.
Interrupts that arrive before Python executes the first statement of the program are counted apart: it cannot
answer them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("a", "b", "c", "d")
BURN = "while True: pass"


@dataclass(frozen=True)
class Table:
    """A table to measure on: its law in Python, and how it is made."""

    name: str
    law: str
    columns: int
    rows: int
    noise: float
    options: tuple[str, ...] = ()

    def write(self, folder: Path) -> Path:
        """Write the table as a CSV file."""
        random = np.random.default_rng(0)
        inputs = random.uniform(1, 5, (self.rows, self.columns))
        target = self.values(inputs) * (1 + self.noise * random.normal(size=self.rows))
        path = folder / f"{self.name}.csv"
        header = ",".join([*NAMES[: self.columns], "y"])
        np.savetxt(path, np.column_stack([inputs, target]), "%.17g", ",", header=header, comments="")
        return path

    def values(self, inputs: np.ndarray) -> np.ndarray:
        """The law on rows of inputs."""
        from physdiffuser.expressions import evaluate, parse

        return evaluate(parse(self.law, NAMES[: self.columns]), inputs)

    def found(self, formula: str) -> bool:
        """Whether a formula is the law up to its fitted constants: outside of the table it agrees to 5 %."""
        from physdiffuser.expressions import evaluate, parse

        inputs = np.random.default_rng(1).uniform(0.7, 7, (500, self.columns))
        with np.errstate(all="ignore"):
            ratio = evaluate(parse(formula, NAMES[: self.columns]), inputs) / self.values(inputs)
        return bool(np.median(np.abs(ratio - 1)) < 0.02 and np.quantile(np.abs(ratio - 1), 0.9) < 0.05)


TABLES = (
    Table("clean", "a*sqrt(a**2 + b**2)/2", 2, 300, 0.0),
    Table("noisy", "a*exp(-b/3)*sin(c) + 2*sqrt(d)", 4, 300, 0.05),
    Table("rows", "a*b/(c + d) + cos(d)/2", 4, 20_000, 0.02),
    Table("network", "a*b*exp(-c)/(a + b)", 3, 200, 0.1),
)


@contextlib.contextmanager
def busy(processes: int) -> Iterator[None]:
    """Processes that compute without end, while the context is entered."""
    children = [subprocess.Popen([sys.executable, "-S", "-c", BURN]) for _ in range(processes)]
    try:
        time.sleep(0.5 if children else 0.0)
        yield
    finally:
        for child in children:
            child.kill()
        for child in children:
            child.wait()


def program(path: Path, *words: str, folder: Path) -> subprocess.Popen[str]:
    """The program on a table, with its run folder in `folder`."""
    python_path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return subprocess.Popen(
        [sys.executable, "-m", "physdiffuser", "solve", str(path), *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": python_path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def measure_limits(arguments: argparse.Namespace, folder: Path) -> int:
    """Run every table with every time limit; print one line each."""
    print(f"{'table':9}{'busy':>5}{'asked':>7}{'taken':>8}{'over':>7}  law  exact  verdict, network's steps")
    for table in TABLES:
        if table.name not in arguments.tables:
            continue
        path = table.write(folder)
        for per_core in arguments.busy:
            for seconds in arguments.times:
                with busy(per_core * (os.cpu_count() or 1)):
                    out = folder / f"{table.name}-{per_core}-{seconds:g}"
                    started = time.monotonic()
                    process = program(path, "--time", f"{seconds:g}", "--out", str(out), folder=folder)
                    errors = process.communicate()[1]
                    taken = time.monotonic() - started
                if process.returncode:
                    print(
                        f"{table.name:9}{per_core:5}{seconds:7g}{taken:8.2f}  exit {process.returncode}",
                        errors,
                    )
                    continue
                document = json.loads((out / "result.json").read_text())
                best = document["best"]
                exact = sum(constant["exact"] for constant in best["constants"])
                print(
                    f"{table.name:9}{per_core:5}{seconds:7g}{taken:8.2f}{taken - seconds:+7.2f}  "
                    f"{'yes' if table.found(best['expression']) else 'no ':4} "
                    f"{exact} of {len(best['constants'])}  {best['verdict']}, "
                    f"{document['timing'].get('steps_autoregressive', 0):g}  {best['expression'][:60]}",
                    flush=True,
                )
    return 0


def measure_interrupts(arguments: argparse.Namespace, folder: Path) -> int:
    """Interrupt runs at random times; print response times, exit codes and tracebacks."""
    path = TABLES[1].write(folder)
    random = np.random.default_rng(arguments.seed)
    faults = 0
    for per_core in arguments.busy:
        delays = np.exp(random.uniform(np.log(arguments.first), np.log(arguments.last), arguments.count))
        responses, codes, tracebacks, early = [], Counter[int](), 0, 0
        with busy(per_core * (os.cpu_count() or 1)):
            for number, delay in enumerate(delays):
                words = ("--json",) if number % 2 else ("--out", str(folder / "interrupted"))
                process = program(path, "--time", "60", *words, folder=folder)
                time.sleep(delay)
                sent = time.monotonic()
                process.send_signal(signal.SIGINT)
                errors = process.communicate()[1]
                seconds = time.monotonic() - sent
                if process.returncode != 130 and "physdiffuser" not in errors:
                    early += 1
                    continue
                responses.append(seconds)
                codes[process.returncode] += 1
                tracebacks += "Traceback" in errors
                if "Traceback" in errors or process.returncode != 130:
                    print(f"after {delay:.3f} s: exit {process.returncode}: {errors.strip()[-400:]}")
        faults += sum(codes.values()) - codes[130] + tracebacks
        ordered = np.sort(responses)
        print(
            f"{per_core} busy processes per core, {len(ordered)} interrupts ({early} before the program): "
            f"median {np.median(ordered):.2f} s, "
            f"9 in 10 within {np.quantile(ordered, 0.9):.2f} s, longest {ordered[-1]:.2f} s, "
            f"{(ordered > 1).sum()} over 1 s; exit codes {dict(codes)}; {tracebacks} tracebacks",
            flush=True,
        )
    return 1 if faults else 0


def numbers(text: str) -> list[float]:
    """Numbers between commas."""
    return [float(part) for part in text.split(",")]


def main() -> int:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["limits", "interrupts"])
    parser.add_argument("--busy", type=lambda text: [int(n) for n in numbers(text)], default=[0, 4])
    parser.add_argument("--times", type=numbers, default=[1, 2, 3, 5, 10, 15])
    parser.add_argument(
        "--tables", type=lambda text: text.split(","), default=[table.name for table in TABLES]
    )
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--first", type=float, default=0.02, help="earliest, seconds after the start")
    parser.add_argument("--last", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        measure = measure_limits if arguments.what == "limits" else measure_interrupts
        return measure(arguments, Path(name))


if __name__ == "__main__":
    sys.exit(main())
