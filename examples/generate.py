"""Write the generated tables of this folder: `python examples/generate.py [FOLDER]`.

Each is a textbook law at random places, with Gaussian noise. Only `random.random` of the standard library is
drawn from, whose numbers are the same in every Python, so the files are the same to the byte everywhere.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

DIGITS = 6


@dataclass(frozen=True)
class Table:
    """How one table is made.

    Attributes
    ----------
    about
        Lines of the comment above the table.
    ranges
        Column name to (low, high, scale), where scale is "uniform" or "log".
    law
        From the values of the columns, in their order, to the target.
    relative
        Whether the noise goes with the value itself, or with the root mean square of the target.
    """

    name: str
    about: tuple[str, ...]
    target: str
    ranges: dict[str, tuple[float, float, str]]
    law: Callable[..., float]
    rows: int
    noise: float
    relative: bool
    seed: int


TABLES = (
    Table(
        name="damped_oscillation.csv",
        about=(
            "A mass on a spring with friction: displacement x (cm) at time t (s).",
            "Law: x = 2.5*exp(-0.3*t)*cos(4*t)",
        ),
        target="x",
        ranges={"t": (0.0, 8.0, "uniform")},
        law=lambda t: 2.5 * math.exp(-0.3 * t) * math.cos(4 * t),
        rows=200,
        noise=0.01,
        relative=False,
        seed=1,
    ),
    Table(
        name="lens.csv",
        about=(
            "A thin lens: distance b of the image (cm) for focal length f and distance g of the object (cm).",
            "Law: b = f*g/(g - f)",
        ),
        target="b",
        ranges={"f": (5.0, 20.0, "uniform"), "g": (30.0, 120.0, "uniform")},
        law=lambda f, g: f * g / (g - f),
        rows=80,
        noise=0.005,
        relative=True,
        seed=2,
    ),
    Table(
        name="langmuir.csv",
        about=(
            "A gas on a solid (Langmuir isotherm): amount adsorbed q (mmol/g) at pressure p (kPa).",
            "Law: q = 4.2*p/(15 + p)",
        ),
        target="q",
        ranges={"p": (1.0, 150.0, "log")},
        law=lambda p: 4.2 * p / (15 + p),
        rows=60,
        noise=0.02,
        relative=True,
        seed=3,
    ),
    Table(
        name="gravity.csv",
        about=(
            "The attraction F (N) of two bodies of mass m1 and m2 (kg) at distance r (m). The temperature",
            "T (K) has nothing to do with it. Units are in gravity_units.yaml.",
            "Law: F = 6.6743e-11*m1*m2/r**2",
        ),
        target="F",
        ranges={
            "m1": (1e24, 9e24, "uniform"),
            "m2": (1e22, 9e22, "uniform"),
            "T": (150.0, 700.0, "uniform"),
            "r": (2e8, 8e8, "uniform"),
        },
        law=lambda m1, m2, temperature, r: 6.6743e-11 * m1 * m2 / r**2,
        rows=150,
        noise=0.01,
        relative=True,
        seed=4,
    ),
)


def lines(table: Table) -> Iterator[str]:
    """The lines of the file."""
    source, normal = random.Random(table.seed), NormalDist()

    def draw(low: float, high: float, scale: str) -> float:
        share = source.random()
        value = low * (high / low) ** share if scale == "log" else low + (high - low) * share
        return float(f"{value:.{DIGITS}g}")  # the law holds for the numbers as they are written

    rows = [[draw(*limits) for limits in table.ranges.values()] for _ in range(table.rows)]
    values = [table.law(*row) for row in rows]
    typical = math.sqrt(math.fsum(value * value for value in values) / len(values))
    size = "the value" if table.relative else "the root mean square of the target"
    for line in table.about:
        yield f"# {line}"
    yield f"# Noise: Gaussian, standard deviation {table.noise:.1%} of {size}; seed {table.seed}."
    yield "# Written by generate.py."
    yield ",".join([*table.ranges, table.target])
    for row, value in zip(rows, values, strict=True):
        sigma = table.noise * (abs(value) if table.relative else typical)
        measured = value + sigma * normal.inv_cdf(source.random() or 0.5)
        yield ",".join(f"{number:.{DIGITS}g}" for number in (*row, measured))


def predators_and_prey() -> Iterator[str]:
    """The lines of the table of differential equations: Lotka and Volterra's, with 2 % noise."""
    source, normal = random.Random(5), NormalDist()
    step, parts, state = 0.2, 50, (2.0, 1.0)

    def rates(x: float, y: float) -> tuple[float, float]:
        return 1.1 * x - 0.4 * x * y, 0.1 * x * y - 0.4 * y

    def moved(x: float, y: float) -> tuple[float, float]:
        size = step / parts
        k1 = rates(x, y)
        k2 = rates(x + size / 2 * k1[0], y + size / 2 * k1[1])
        k3 = rates(x + size / 2 * k2[0], y + size / 2 * k2[1])
        k4 = rates(x + size * k3[0], y + size * k3[1])
        return (
            x + size / 6 * (k1[0] + 2 * k2[0] + 2 * k3[0] + k4[0]),
            y + size / 6 * (k1[1] + 2 * k2[1] + 2 * k3[1] + k4[1]),
        )

    yield "# Prey and predators (thousands) at time t (years): the equations of Lotka and Volterra."
    yield "# Laws: dprey/dt = 1.1*prey - 0.4*prey*predators"
    yield "#       dpredators/dt = 0.1*prey*predators - 0.4*predators"
    yield "# Noise: Gaussian, standard deviation 2.0% of the value; seed 5."
    yield "# Written by generate.py."
    yield "t,prey,predators"
    for row in range(151):
        noisy = [value * (1.0 + 0.02 * normal.inv_cdf(source.random() or 0.5)) for value in state]
        yield ",".join(f"{number:.{DIGITS}g}" for number in (row * step, *noisy))
        for _ in range(parts):
            state = moved(*state)


def main(folder: Path) -> None:
    """Write all tables into a folder."""
    text = "\n".join(predators_and_prey()) + "\n"
    (folder / "lotka_volterra.csv").write_text(text, encoding="utf-8", newline="\n")
    for table in TABLES:
        (folder / table.name).write_text("\n".join(lines(table)) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
