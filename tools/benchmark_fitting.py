"""Fits per second per core, and how often constants are found, beside scipy on the same problems.

    OMP_NUM_THREADS=1 python tools/benchmark_fitting.py [--rows 200] [--seconds 0.5] [--device cuda]

Five tables:

* refits from values 10 to 40 % off: `fitting.refit` beside `scipy.optimize.least_squares` (same derivatives);
* fits without a start: time, and how many of 20 draws of the constants are found to 1e-6;
* snapping: time, and how many laws come back exactly, by noise;
* snapping: how often one constant, known to a given relative error, is made exact: arbitrary ones (which
  should stay numbers) and some exact ones.

* fits from one start, one by one and all together: the sums of two functions that a search follows up.

A last one gives the coverage of 95 % intervals.

Times are processor time on one thread, the best of three.

With `--device cuda` there is one table only: fits made together on the GPU, in seconds of the wall, and what
share of its memory's bandwidth (measured by a copy) and of its matrix product in double precision they reach,
counting all that torch's operations read, write and multiply. `cpu-torch` does this by torch on one thread.
"""

from __future__ import annotations

import argparse
import math
import platform
import time
from collections.abc import Callable
from itertools import combinations

import numpy as np
import numpy.typing as npt

from physdiffuser.device import HOST, Device, open_device
from physdiffuser.errors import UsageError
from physdiffuser.expressions import (
    Expression,
    Number,
    Parameter,
    Symbol,
    Variable,
    evaluate,
    parse,
    value_and_jacobian,
)
from physdiffuser.expressions.tree import bind, mul, parameter_count, size, substitute, walk
from physdiffuser.fitting import fit_batched, fit_constants, prediction_interval, refit, snap, uncertainty

Array = npt.NDArray[np.float64]

# Formula, range of each constant.
LAWS: tuple[tuple[str, tuple[tuple[float, float], ...]], ...] = (
    ("c1*x + c2*y + c3*x*y", ((0.5, 3), (0.5, 3), (0.5, 3))),
    ("c1*exp(-c2*x) + c3", ((0.5, 3), (0.3, 2), (0.5, 3))),
    ("c1*sin(c2*x + c3)", ((0.5, 3), (2, 20), (-1.5, 1.5))),
    ("c1*x**c2*y**c3", ((0.5, 3), (-2, 2), (-2, 2))),
    ("c1*x/(c2 + x) + c3*y", ((0.5, 3), (0.3, 3), (-2, 2))),
    ("c1/(1 + exp(-c2*(x - c3)))", ((0.5, 3), (1, 6), (0.8, 2.5))),
    ("c1*exp(-(x - c2)**2/(2*c3**2))", ((0.5, 3), (0.8, 2.5), (0.2, 1))),
    ("c1*exp(-c2*x)*cos(c3*x + c4)", ((0.5, 3), (0.2, 1), (3, 20), (-1.5, 1.5))),
    ("c1/(1 + (x/c2)**c3)", ((0.5, 3), (0.8, 2.5), (1.5, 5))),
    ("sqrt(c1*x + c2*y**2)", ((0.5, 3), (0.5, 3))),
)
EXACT = (
    "2*pi*sqrt(x**3/y)",
    "3/(8*pi)*x*y**2",
    "x*exp(-x**2/2)/sqrt(2*pi)",
    "sqrt(2)*x/(1 + y)",
    "x**1.5 + 2*y**2",
    "4*pi/3*x**3 - y/3",
    "x/(4*pi*y**2)",
    "x*sin(2*pi*y) + 0.5",
    "1/(exp(x/y) - 1)",
    "log(1 + x*y)/2",
    "x**2 + y**2 - 2*x*y*cos(y)",
    "x/sqrt(1 - y**2/16)",
)


def skeleton_of(text: str) -> Expression:
    """A formula in x, y with parameters c1, c2, ..."""
    parsed = parse(text, ["x", "y", "c1", "c2", "c3", "c4", "c5"])

    def replace(node: Expression) -> Expression | None:
        return Parameter(node.index - 2) if isinstance(node, Variable) and node.index >= 2 else None

    return substitute(parsed, replace)


def per_second(run: Callable[[], object], seconds: float) -> float:
    """Calls per second, the best of three."""
    run()
    best = 0.0
    for _ in range(3):
        calls, start = 0, time.process_time()
        while time.process_time() - start < seconds / 3:
            run()
            calls += 1
        best = max(best, calls / (time.process_time() - start))
    return best


def scipy_fit(skeleton: Expression, inputs: Array, target: Array, start: Array) -> object:
    """The same fit by scipy's trust-region method with exact derivatives."""
    from scipy.optimize import least_squares

    return least_squares(
        lambda values: evaluate(skeleton, inputs, values) - target,
        start,
        jac=lambda values: value_and_jacobian(skeleton, inputs, values)[1].T,
        x_scale="jac",
        xtol=1e-12,
        ftol=1e-12,
        gtol=1e-12,
    )


def refits(rows: int, seconds: float) -> None:
    """First table."""
    print(f"\nrefits per second, {rows} rows, 1 % noise\n")
    print("| formula | nodes | constants | physdiffuser | scipy least_squares |")
    print("|---|---|---|---|---|")
    rates = []
    for text, ranges in LAWS:
        rng = np.random.default_rng(0)
        skeleton = skeleton_of(text)
        inputs = rng.uniform(0.5, 3.0, (rows, 2))
        truth = np.array([(low + high) / 2 for low, high in ranges])
        clean = evaluate(skeleton, inputs, truth)
        target = clean + 0.01 * clean.std() * rng.normal(size=rows)
        start = truth * (1 + np.array([0.4, 0.1, -0.2, 0.2])[: truth.size])
        expression = bind(skeleton, list(start))
        count = parameter_count(skeleton)
        ours = per_second(lambda e=expression, x=inputs, y=target: refit(e, x, y), seconds)  # type: ignore[misc]
        theirs = per_second(
            lambda s=skeleton, x=inputs, y=target, p=start: scipy_fit(s, x, y, p),  # type: ignore[misc]
            seconds,
        )
        rates.append(ours)
        print(f"| `{text}` | {size(skeleton)} | {count} | {ours:,.0f} | {theirs:,.0f} |")
    print(f"\nmedian {np.median(rates):,.0f} refits per second")


def pairs_of_functions() -> tuple[list[Expression], list[list[float]]]:
    """60 sums of two functions, and starts for their constants."""
    parts = ("exp(-c*u)", "1/(1 + c*u)", "log(1 + c*u)", "sqrt(1 + c*u)", "tanh(c*u)", "atan(c*u)")
    texts = [
        f"c1 + c2*{first.replace('c*u', 'c3*x')} + c4*{factor}{second.replace('c*u', 'c5*x')}"
        for first, second in combinations(parts, 2)
        for factor in ("", "y*", "x*", "x*y*")
    ]
    return [skeleton_of(text) for text in texts], [[1.0, 1.0, 0.5, 1.0, 1.5]] * len(texts)


def table_of_pairs(rows: int) -> tuple[Array, Array]:
    """What these sums are fitted to, at 1 % noise."""
    rng = np.random.default_rng(0)
    inputs = rng.uniform(0.5, 3.0, (rows, 2))
    clean = evaluate(parse("1 + 2*exp(-x) + y/(1 + 2*x)", ["x", "y"]), inputs)
    return inputs, clean + 0.01 * clean.std() * rng.normal(size=rows)


def together(seconds: float) -> None:
    """`fit_batched` beside `fit_constants` on 60 pairs of functions."""
    print("\nfits from one start, one by one and together, 60 skeletons of five constants, 1 % noise\n")
    print("| rows | one by one, fits a second | together, fits a second |")
    print("|---|---|---|")
    skeletons, starts = pairs_of_functions()
    for rows in (12, 100, 1000):
        inputs, target = table_of_pairs(rows)

        def alone(x: Array = inputs, y: Array = target) -> None:
            for skeleton, start in zip(skeletons, starts, strict=True):
                fit_constants(skeleton, x, y, initial=start, starts=1, iterations=15, tolerance=1e-8)

        def at_once(x: Array = inputs, y: Array = target) -> None:
            fit_batched(skeletons, starts, x, y, iterations=15, tolerance=1e-8)

        rates = [len(skeletons) * per_second(run, seconds) for run in (alone, at_once)]
        print(f"| {rows:,} | {rates[0]:,.0f} | {rates[1]:,.0f} |")


def on_device(device: Device, repeats: int = 3) -> None:
    """`fit_batched` on a device: its rate, and what of the device it uses."""
    from device_peaks import Work, best_of, peaks

    product, bandwidth = peaks(repeats, device, np.float64)
    print(
        f"\nfits together by torch on {device.describe()}, 60 skeletons of five constants, 1 % noise\n\n"
        f"matrix product in double precision: {product / 1e9:.0f} GFLOP/s; copy: {bandwidth / 1e9:.0f} GB/s\n"
    )
    print("| rows | fits a second | by numpy | share of the copy | share of the matrix product |")
    print("|---|---|---|---|---|")
    skeletons, starts = pairs_of_functions()
    for rows in (100, 1_000, 20_000):
        inputs, target = table_of_pairs(rows)

        def fits(where: Device, x: Array = inputs, y: Array = target) -> object:
            return fit_batched(skeletons, starts, x, y, iterations=15, tolerance=1e-8, device=where)

        # Once before it counts, under a counter.
        with Work() as work:
            fits(device)
        took = best_of(repeats, lambda fits=fits: fits(device), device)  # type: ignore[misc]
        by_numpy = best_of(1, lambda fits=fits: fits(HOST))  # type: ignore[misc]
        print(
            f"| {rows:,} | {len(skeletons) / took:,.0f} | {len(skeletons) / by_numpy:,.0f} "
            f"| {100 * work.bytes / took / bandwidth:.0f} % | {100 * work.flops / took / product:.1f} % |"
        )


def cold_fits(rows: int) -> None:
    """Second table."""
    print(f"\nfits without a start, {rows} rows, clean, 20 draws of the constants each\n")
    print("| formula | milliseconds | found to 1e-6 | at 1 % noise, as good as from the truth |")
    print("|---|---|---|---|")
    for text, ranges in LAWS:
        skeleton = skeleton_of(text)
        found = good = 0
        spent = 0.0
        for seed in range(20):
            rng = np.random.default_rng([seed, 1])
            inputs = rng.uniform(0.5, 3.0, (rows, 2))
            truth = np.array([rng.uniform(low, high) for low, high in ranges])
            clean = evaluate(skeleton, inputs, truth)
            begin = time.process_time()
            fit = fit_constants(skeleton, inputs, clean, rng=np.random.default_rng(seed))
            spent += time.process_time() - begin
            found += bool(
                np.abs(evaluate(skeleton, inputs, fit.parameters) - clean).max() < 1e-6 * clean.std()
            )
            noisy = clean + 0.01 * clean.std() * rng.normal(size=rows)
            fit = fit_constants(skeleton, inputs, noisy, rng=np.random.default_rng(seed))
            best = fit_constants(skeleton, inputs, noisy, initial=truth, starts=1)
            good += fit.loss <= best.loss * (1 + 1e-6)
        print(f"| `{text}` | {spent / 20 * 1e3:.1f} | {found}/20 | {good}/20 |")


def snaps(rows: int) -> None:
    """Third table."""

    def forget(node: Expression) -> Expression | None:
        return Number(float(node.value)) if isinstance(node, Number | Symbol) else None

    print(f"\nsnapping, {rows} rows, {len(EXACT)} laws, 5 draws of the noise each\n")
    print("| noise | laws back exactly | milliseconds |")
    print("|---|---|---|")
    for noise in (0.0, 1e-6, 1e-3, 1e-2, 1e-1):
        exact = 0
        spent = 0.0
        for text in EXACT:
            law = parse(text, ["x", "y"])
            for seed in range(5):
                rng = np.random.default_rng([seed, 2])
                inputs = rng.uniform(0.5, 3.0, (rows, 2))
                clean = evaluate(law, inputs)
                target = clean + noise * math.sqrt(float(np.mean(clean**2))) * rng.normal(size=rows)
                begin = time.process_time()
                found = snap(substitute(law, forget), inputs, target)
                spent += time.process_time() - begin
                exact += bool(np.abs(evaluate(found.expression, inputs) / clean - 1).max() < 1e-12)
        total = 5 * len(EXACT)
        print(f"| {noise:g} | {exact}/{total} | {spent / total * 1e3:.0f} |")


def snap_rates() -> None:
    """Fourth table."""
    names = ("1", "2", "3", "1/2", "3/4", "pi", "2*pi", "4*pi/3", "sqrt(2)")
    inputs = np.random.default_rng(0).uniform(1, 2, (50, 1))

    def made_exact(constant: float, error: float, seed: int) -> float | None:
        rng = np.random.default_rng([seed, 5])
        target = constant * inputs[:, 0]
        target = target + error * constant * np.sqrt((inputs**2).sum()) * rng.normal(size=50)
        found = snap(mul(Number(constant), Variable(0)), inputs, target).expression
        numbers = [node.value for node in walk(found) if isinstance(node, Number)]
        if any(isinstance(value, float) for value in numbers):
            return None
        return float(evaluate(found, np.ones((1, 1)))[0])

    print("\none constant made exact, per cent of 400 arbitrary ones (0.05 to 20) and of 40 draws\n")
    print("| relative error | arbitrary | " + " | ".join(f"`{name}`" for name in names) + " |")
    print("|---|---" + "|---" * len(names) + "|")
    for error in (0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8):
        wrong = sum(
            made_exact(math.exp(np.random.default_rng([seed, 9]).uniform(-3, 3)), error, seed) is not None
            for seed in range(400)
        )
        cells = [f"{wrong / 4:.1f}"]
        for name in names:
            value = float(evaluate(parse(name, []), np.zeros((1, 0)))[0])
            hits = [made_exact(value, error, seed) for seed in range(40)]
            right = sum(hit is not None and abs(hit / value - 1) < 1e-12 for hit in hits)
            cells.append(f"{right / 0.4:.0f}")
        print(f"| {error:g} | " + " | ".join(cells) + " |")


def coverage() -> None:
    """How often 95 % intervals hold the truth."""
    print("\ncoverage of 95 % intervals, 300 tables for each of three formulas\n")
    print("| rows | noise | constants | new observations |")
    print("|---|---|---|---|")
    for rows in (12, 25, 100):
        for relative in (False, True):
            inside = total = predicted = 0
            for text, truth in (
                ("c1*exp(-c2*x) + c3", [2.3, 0.7, 1.1]),
                ("c1*x**c2*y**c3", [2.3, 0.67, -1.3]),
                ("c1*x/(c2 + x)", [2.3, 0.67]),
            ):
                skeleton, values = skeleton_of(text), np.array(truth)
                for seed in range(300):
                    rng = np.random.default_rng([seed, rows])
                    inputs = rng.uniform(0.5, 3.0, (rows + 20, 2))
                    clean = evaluate(skeleton, inputs, values)
                    sigma = 0.03 * (clean if relative else np.full(rows + 20, clean.std()))
                    noisy = clean + sigma * rng.normal(size=rows + 20)
                    fit = fit_constants(skeleton, inputs[:rows], noisy[:rows], initial=truth, starts=1)
                    known = uncertainty(skeleton, fit.parameters, inputs[:rows], noisy[:rows])
                    low, high = known.intervals().T
                    inside += int(((low <= values) & (values <= high)).sum())
                    total += values.size
                    below, above = prediction_interval(known, inputs[rows:]).T
                    predicted += int(((below <= noisy[rows:]) & (noisy[rows:] <= above)).sum())
            kind = "relative" if relative else "even"
            print(
                f"| {rows} | {kind} | {100 * inside / total:.1f} % | {100 * predicted / (900 * 20):.1f} % |"
            )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=0.5, help="time per formula and contender")
    parser.add_argument("--device", choices=("cpu", "cuda", "cpu-torch"), default="cpu")
    options = parser.parse_args()
    try:
        device = open_device(options.device)
    except UsageError as error:
        parser.error(str(error))
    print(f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}")
    if device is not HOST:
        on_device(device)
        return
    refits(options.rows, options.seconds)
    together(options.seconds)
    cold_fits(options.rows)
    snaps(1000)
    snap_rates()
    coverage()


if __name__ == "__main__":
    main()
