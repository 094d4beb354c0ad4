"""Golden runs: the documents of fixed runs, recorded once and compared byte for byte after a change.

    python tools/golden_runs.py record                  # all runs, into tests/golden/documents.json.xz
    python tools/golden_runs.py record --every 10       # a tenth of them; the others leave the record
    python tools/golden_runs.py record --missing        # add those that are not in the record
    python tools/golden_runs.py compare                 # all runs against the record
    python tools/golden_runs.py compare --every 10      # a tenth of them

A change that only moves or renames code changes no document. A document holds everything that `solve --json`
prints but `timing`. Runs are limited by steps, so they do not depend on the speed of the machine. The last
digits of numpy's results depend on the processor and on numpy's version: the record names both, and elsewhere
only the forms of the answers are compared.
"""

from __future__ import annotations

import argparse
import json
import lzma
import multiprocessing
import platform
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "tests" / "golden" / "documents.json.xz"
SEEDS = (0, 1, 2)
# Steps of a run with the default generators, and of one with a single generator.
STEPS, STEPS_ALONE = 40, 10
GENERATORS = ("enumeration", "sparse", "evolution", "neighbours", "autoregressive", "diffusion")
ROWS = (20, 60, 200, 1_000, 5_000, 20_000)
NOISE = (0.0, 0.01, 0.1)
# Development laws, evenly spread over the suite.
LAWS = 36
# They are chosen from the laws that the suite had first, so that new laws leave the cases as they are.
FIRST_LAWS = 570
# Where processor or numpy differ, at least this share of the answers must have the same form.
SAME_FORMS = 0.8

Json = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A table and the options it is solved with.

    Attributes
    ----------
    columns
        Values by column name; the target comes last.
    options
        Of `physdiffuser.solve`.
    """

    name: str
    columns: dict[str, np.ndarray]
    options: Json = field(default_factory=dict)


def cases() -> list[Case]:
    """The tables, always the same."""
    return [*_laws(), *_examples(), *_hostile()]


def _laws() -> Iterator[Case]:
    from benchmarks_feynman.sampling import sample
    from benchmarks_feynman.suites import load_suite

    suite = load_suite("dev")[:FIRST_LAWS]
    for number in range(LAWS):
        law = suite[number * len(suite) // LAWS]
        rows, noise = ROWS[number % len(ROWS)], NOISE[number // 2 % len(NOISE)]
        table = sample(law, rows=rows, noise=noise, dummy=number % 5 == 4)
        columns = dict(zip(table.names, table.inputs.T, strict=True))
        options: Json = {"target": table.output}
        if number % 6 == 1 and law.units is not None:
            options["units"] = law.units
        if number % 6 == 2:
            random = np.random.default_rng(number)
            columns["sigma"] = random.uniform(0.5, 2, rows) * max(noise, 0.01) * float(table.target.std())
            options["errors"] = "sigma"
        if number % 6 == 3:
            columns["w"] = np.random.default_rng(number).uniform(0.1, 3, rows)
            options["weights"] = "w"
        yield Case(f"{law.id} {rows} rows noise {noise:g}", {**columns, table.output: table.target}, options)


def _examples() -> Iterator[Case]:
    import pandas

    names = (
        "balmer",
        "boyle",
        "damped_oscillation",
        "filament",
        "gravity",
        "hubble",
        "kepler",
        "langmuir",
        "lens",
    )
    for name in names:
        frame = pandas.read_csv(ROOT / "examples" / f"{name}.csv", comment="#")
        columns = {str(column): frame[column].to_numpy() for column in frame.columns}
        yield Case(name, columns)
        if name == "gravity":
            units = str(ROOT / "examples" / "gravity_units.yaml")
            yield Case("gravity with units", columns, {"units": units, "constants": "G"})


def _hostile() -> Iterator[Case]:
    random = np.random.default_rng(2)
    x, z = random.uniform(1, 3, 200), random.uniform(-2, 2, 200)
    noise = random.normal(size=200)
    outliers = 3 * x + 0.05 * noise
    outliers[:6] += 40
    yield Case("pure noise", {"x": x, "z": z, "y": noise})
    yield Case("constant target", {"x": x, "y": np.full(200, 2.5)})
    yield Case("three rows", {"x": x[:3], "y": x[:3] ** 2})
    yield Case("collinear columns", {"x": x, "u": 2 * x + 1, "y": x * (2 * x + 1)})
    yield Case("constant column", {"x": x, "c": np.ones(200), "y": 1 / x})
    yield Case("repeated rows", {"x": np.repeat(x[:10], 20), "y": np.repeat(np.exp(x[:10]), 20)})
    yield Case("two digits", {"x": x, "y": np.array([float(f"{value:.2g}") for value in 3 * x**2])})
    yield Case("small and large", {"x": 1e-200 * x, "z": 1e180 * z, "y": 1e-20 * x * z})
    yield Case("through zero", {"x": 10 * x, "y": np.sin(10 * x)})
    yield Case("outliers", {"x": x, "y": outliers}, {"loss": "robust"})
    yield Case("relative errors", {"x": x, "y": 5 * x**3 * (1 + 0.02 * noise)}, {"noise_model": "relative"})
    yield Case("few operators", {"x": x, "z": z, "y": x * z - x}, {"operators": ["add", "sub", "mul"]})
    yield Case("step", {"x": z, "y": np.sign(z)})
    yield Case("whole numbers", {"n": np.arange(1.0, 41), "y": np.arange(1.0, 41) * np.arange(2.0, 42) / 2})


def runs() -> list[tuple[int, str, int]]:
    """Position of the case, generator or `all`, seed."""
    return [
        (case, generator, seed)
        for case in range(len(cases()))
        for generator in ("all", *GENERATORS)
        for seed in SEEDS
    ]


def document_of(run: tuple[int, str, int]) -> str:
    """The document of a run without `timing`, as one line of JSON."""
    import pandas

    from physdiffuser import solve
    from physdiffuser.errors import PhysdiffuserError
    from physdiffuser.report.documents.json_document import document

    position, generator, seed = run
    case = cases()[position]
    options = {"time": None, "plugins": False, "seed": seed, **case.options}
    options["steps"] = STEPS if generator == "all" else STEPS_ALONE
    if generator != "all":
        options["generators"] = [generator]
    try:
        content = document(solve(pandas.DataFrame(case.columns), **options))
    except PhysdiffuserError as error:
        content = {"error": str(error)}
    content.pop("timing", None)
    content.pop("version", None)
    return json.dumps(content, sort_keys=True, allow_nan=False)


def platform_name() -> str:
    """What the last digits depend on: processor, operating system, Python, numpy, torch."""
    from importlib.metadata import version

    cpu = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), cpu)
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "sympy", "torch"))
    return f"{cpu}, {platform.system()}, Python {platform.python_version()}, {packages}"


def label(run: tuple[int, str, int], names: list[str]) -> str:
    """What a run is called in the record."""
    return f"{names[run[0]]} | {run[1]} | seed {run[2]}"


def solved(chosen: list[tuple[int, str, int]], jobs: int) -> Iterator[str]:
    """The documents of some runs, in their order."""
    if jobs == 1:
        yield from map(document_of, chosen)
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(document_of, chosen, chunksize=1)


def differences(old: Json, new: Json, path: str = "") -> list[str]:
    """The places in which two documents differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = sorted({*old, *new})
        return [line for key in keys for line in differences(old.get(key), new.get(key), f"{path}.{key}")]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [
            line
            for place, (one, other) in enumerate(zip(old, new, strict=True))
            for line in differences(one, other, f"{path}[{place}]")
        ]
    return [] if old == new else [f"{path or '.'}: {old!r} -> {new!r}"]


def comparable(old: Json, new: Json) -> tuple[Json, Json]:
    """Two documents under the same keys; an earlier schema has other keys, and other words for checks."""
    from physdiffuser.report.documents.solution_reader import upgraded

    if old.get("schema") != new.get("schema"):
        old = upgraded(old)
        for content in (old, new):
            for row in (content.get("best"), *content.get("pareto", ())):
                if row is not None:
                    row.pop("verification", None)
    return old, new


def form(document: Json) -> str:
    """The chosen formula with its numbers left out."""
    best = document.get("best")
    text = "" if best is None else str(best["expression"])
    return "".join(letter for letter in text if not (letter.isdigit() or letter in ".e+-"))


def record(jobs: int, every: int, first: int, missing: bool) -> int:
    """Make the record, or add what is missing in it."""
    names = [case.name for case in cases()]
    documents: dict[str, Json] = {}
    if missing:
        known = json.loads(lzma.decompress(RECORD.read_bytes()))
        if known["platform"] != platform_name():
            print(f"recorded on {known['platform']}; this is {platform_name()}", file=sys.stderr)
            return 2
        documents = known["documents"]
    chosen = [run for run in runs()[first % every :: every] if label(run, names) not in documents]
    begun = time.monotonic()
    for run, text in zip(chosen, solved(chosen, jobs), strict=True):
        documents[label(run, names)] = json.loads(text)
        if len(documents) % 50 == 0:
            print(f"{len(documents)} of {len(chosen)}, {time.monotonic() - begun:.0f} s", flush=True)
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    content = json.dumps({"platform": platform_name(), "documents": documents}, sort_keys=True)
    RECORD.write_bytes(lzma.compress(content.encode(), preset=9))
    print(f"{len(documents)} documents, {RECORD.stat().st_size / 1e6:.2f} MB")
    return 0


def compare(jobs: int, every: int, first: int) -> int:
    """Compare with the record; the exit code is 1 if a document differs."""
    if not RECORD.exists():
        print(f"{RECORD} is missing; make it with `record` before the change", file=sys.stderr)
        return 2
    known = json.loads(lzma.decompress(RECORD.read_bytes()))
    names = [case.name for case in cases()]
    some = runs()[first % every :: every]
    chosen = [run for run in some if label(run, names) in known["documents"]]
    if not chosen:
        print("none of these runs is in the record: run `record --missing`", file=sys.stderr)
        return 2
    exactly = known["platform"] == platform_name()
    differing, same_forms = 0, 0
    for run, text in zip(chosen, solved(chosen, jobs), strict=True):
        old, new = comparable(known["documents"][label(run, names)], json.loads(text))
        same_forms += form(old) == form(new)
        found = differences(old, new)
        differing += bool(found)
        if found and exactly:
            print(label(run, names), *found[:6], sep="\n    ")
    print(f"{len(chosen)} runs: {differing} documents differ, {same_forms} answers have the same form")
    if len(chosen) < len(some):
        print(f"{len(some) - len(chosen)} runs are not in the record")
    if exactly:
        return int(differing > 0)
    print(f"recorded on {known['platform']}; this is {platform_name()}: only forms count")
    return int(same_forms < SAME_FORMS * len(chosen))


def main() -> int:
    """Run the tool."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("record", "compare"))
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--every", type=int, default=1, help="every N-th run only")
    parser.add_argument("--first", type=int, default=0, help="the first of these")
    parser.add_argument("--missing", action="store_true", help="record what the record has not")
    arguments = parser.parse_args()
    if arguments.what == "record":
        return record(arguments.jobs, arguments.every, arguments.first, arguments.missing)
    return compare(arguments.jobs, arguments.every, arguments.first)


if __name__ == "__main__":
    sys.exit(main())
