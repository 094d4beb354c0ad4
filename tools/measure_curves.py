"""How often the law of a noisy table with one input is chosen, over curves of the laboratory.

    python tools/measure_curves.py --rows 40 --noise 0.02 --steps 40 --seed 77

Each curve is sampled at random, and has normal errors in shares of its deviation. An answer is the law if it
becomes exact once its fitted constants are refitted to values without errors.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from physdiffuser import solve
from physdiffuser.expressions import Expression, evaluate
from physdiffuser.fitting import refit

FloatArray = npt.NDArray[np.float64]
Curve = tuple[Callable[[FloatArray], FloatArray], float, float]

# Name: the curve, and the range of its input.
CURVES: dict[str, Curve] = {
    "Michaelis-Menten": (lambda x: 12.4 * x / (3.1 + x), 0.2, 20),
    "logistic": (lambda x: 88 / (1 + np.exp(-(x - 6.2) / 1.3)), 0, 15),
    "Gompertz": (lambda x: 54 * np.exp(-3.3 * np.exp(-0.31 * x)), 0, 18),
    "Weibull": (lambda x: 1 - np.exp(-((x / 4.4) ** 2.3)), 0.1, 9),
    "Gaussian": (lambda x: 7.7 * np.exp(-((x - 3.3) ** 2) / (2 * 0.8**2)), 0, 7),
    "Lorentzian": (lambda x: 2.1 / (1 + ((x - 5.1) / 0.6) ** 2), 2, 8),
    "decay on a level": (lambda x: 4.2 + 17 * np.exp(-x / 2.6), 0, 12),
    "two decays": (lambda x: 31 * np.exp(-x / 1.1) + 12 * np.exp(-x / 8.7), 0, 20),
    "rise and decay": (lambda x: 9.9 * (np.exp(-0.15 * x) - np.exp(-1.2 * x)), 0, 20),
    "Arrhenius": (lambda x: 4.4e6 * np.exp(-5300 / x), 300, 400),
    "power on a level": (lambda x: 2.2 + 0.31 * x**1.7, 0.5, 12),
    "Hill": (lambda x: 65 * x**2.6 / (4.2**2.6 + x**2.6), 0.3, 14),
    "Morse": (lambda x: 3.8 * (1 - np.exp(-1.6 * (x - 1.3))) ** 2, 0.8, 4),
    "damped wave": (lambda x: 3 * np.exp(-0.2 * x) * np.cos(2.1 * x), 0, 12),
    "logarithm": (lambda x: 1.7 + 0.62 * np.log(x), 0.3, 40),
    "root": (lambda x: 3.3 * np.sqrt(x + 2.2), 0, 30),
    "parabola": (lambda x: 2.1 + 3.3 * x - 0.44 * x**2, 0, 9),
    "tanh": (lambda x: 19 * np.tanh(x / 3.7), 0.1, 12),
    "squared Langmuir": (lambda x: 5.5 * x**2 / (8.8 + x**2), 0.2, 10),
    "reciprocal": (lambda x: 41 / (x + 2.7), 0.5, 20),
    "Planck": (lambda x: 0.8 * x**3 / (np.exp(0.9 * x) - 1), 0.3, 10),
    "stretched decay": (lambda x: 15 * np.exp(-((x / 3.1) ** 0.6)), 0.1, 15),
    "sine": (lambda x: 4 + 1.9 * np.sin(1.3 * x + 0.4), 0, 12),
    "shifted inverse square": (lambda x: 77 / (x + 0.4) ** 2, 0.5, 6),
}
# Relative deviation of a refitted law from the values without errors.
SAME = 1e-6


def is_law(expression: Expression, inputs: FloatArray, clean: FloatArray) -> bool:
    """Whether the formula gives the values without errors, its constants refitted."""
    with np.errstate(all="ignore"):
        fitted = refit(expression, inputs, clean).expression
        error = evaluate(fitted, inputs) - clean
    return bool(np.sqrt(np.mean(np.square(error))) < SAME * clean.std())


def main() -> None:
    """Solve a table of each curve and count."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--noise", type=float, default=0.02)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seed", type=int, default=77)
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    right = verified = wrong = 0
    for name, curve in CURVES.items():
        of, low, high = curve
        exact = np.linspace(low, high, 200)[1:]
        x = np.sort(random.uniform(low, high, options.rows))
        clean = of(x)
        target = clean + options.noise * clean.std() * random.standard_normal(options.rows)
        best = solve(x[:, None], target, names=["x"], steps=options.steps).best
        law = best is not None and is_law(best.expression, exact[:, None], of(exact))
        right += law
        if best is not None and best.verdict == "verified":
            verified += law
            wrong += not law
        print(f"{name:24s} {'law' if law else '-':4s} {'' if best is None else best.text}", flush=True)
    print(
        f"{right} of {len(CURVES)} are the law; verified: {verified} laws, {wrong} others "
        f"({options.rows} rows, noise {options.noise:g}, {options.steps} steps, seed {options.seed})"
    )


if __name__ == "__main__":
    main()
