"""How often a fitted number is said to agree with physical constants, rightly and wrongly.

    python tools/measure_physical_constants.py                # 2,000 numbers for each precision, seed 0

Arbitrary numbers are drawn with a uniform logarithm, from 1e-3 to 1e3 and from 1e-35 to 1e35. True ones are
the constants and products of the list below. Each number is known to a standard error of 1 %, 0.1 % or
0.01 %, and lies off its true value by a normal error.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from physdiffuser.data.statements.constants import PHYSICAL_CONSTANTS
from physdiffuser.expressions import evaluate, parse
from physdiffuser.finalize.constants.physical import agreement

PRECISIONS = (1e-2, 1e-3, 1e-4)
RANGES = {"1e-3 to 1e3": (-3, 3), "1e-35 to 1e35": (-35, 35)}
TRUE = """
c c**2 1/c 1/c**2 G h hbar e k_B R N_A F sigma_SB b_W g_n epsilon_0 mu_0 Z_0 alpha m_e m_p a_0 R_inf 1/R_inf
mu_B 1/(4*pi*epsilon_0) h*c h*c/k_B h/k_B k_B/e e/k_B e/m_e h/e 2*e/h mu_0/(4*pi) mu_0/(2*pi) 2*G/c**2
8*pi*G/c**4 4*G/c**2 3*k_B/2 3*R/2 1/(2*g_n) g_n/2 1/R 2*h*c**2 h/m_e h/c 4*sigma_SB
"""


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--numbers", type=int, default=2000, help="for each precision and range")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    known = {name: constant.value for name, constant in PHYSICAL_CONSTANTS.items()}
    head = ["standard error", *(f"arbitrary, {name}, %" for name in RANGES)]
    head += ["true found, %", "true, another form, %"]
    print(f"| {' | '.join(head)} |\n{'|---' * len(head)}|")
    listed = TRUE.split()
    for precision in PRECISIONS:
        rng = np.random.default_rng([options.seed, round(1e6 * precision)])
        cells = []
        for low, high in RANGES.values():
            values = 10.0 ** rng.uniform(low, high, options.numbers)
            noted = sum(agreement(value, precision * value) is not None for value in values)
            cells.append(100 * noted / options.numbers)
        found = other = 0
        draws = max(options.numbers // 50, 1)
        for text in listed:
            true = float(evaluate(parse(text, [], known), np.zeros((1, 1)))[0])
            for _ in range(draws):
                value = true * (1.0 + precision * rng.standard_normal())
                match = agreement(value, precision * value)
                right = match is not None and math.isclose(match.value, true, rel_tol=1e-7)
                found += right
                other += match is not None and not right
        cells += [100 * found / (draws * len(listed)), 100 * other / (draws * len(listed))]
        print(f"| {100 * precision:g} % | " + " | ".join(f"{cell:.1f}" for cell in cells) + " |", flush=True)


if __name__ == "__main__":
    main()
