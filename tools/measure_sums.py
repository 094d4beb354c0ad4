"""How often a law that is a sum of products is found: `y = c1*M1*f1(u) + c2*M2*f2(v) + ...`.

    python tools/measure_sums.py --tables 24 --noise 0.01 --steps 40 --seed 1

Each term has a factor, a product of powers of at most two columns, and at most one function of another column
with a constant inside. Laws, constants and rows are drawn from the seed. Noise is normal, in shares of the
deviation of the target. An answer is the law if it becomes exact once its fitted constants are refitted to
values without noise.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from measure_curves import is_law

from physdiffuser import solve
from physdiffuser.expressions import Expression, Number, Variable, evaluate, parse, to_text
from physdiffuser.expressions.tree import add, mul, power, variables

# Functions of a column u with a constant k, and the range of k.
FUNCTIONS = (
    ("exp(-k*u)", 0.3, 1.5),
    ("exp(k*u)", 0.2, 0.8),
    ("1/(k + u)", 0.5, 3.0),
    ("u/(k + u)", 0.5, 3.0),
    ("log(k + u)", 1.2, 4.0),
    ("cos(k*u)", 0.8, 3.0),
    ("sin(k*u)", 0.8, 3.0),
    ("sqrt(k + u)", 0.5, 4.0),
    ("tanh(k*u)", 0.3, 1.2),
    ("exp(-k*u**2)", 0.2, 0.8),
)
NAMES = "abcd"
LOW, HIGH = 0.5, 4.0


def draw_law(random: np.random.Generator, columns: int, terms: int) -> Expression:
    """Return a sum of so many products of so many columns, with one function or more."""
    while True:
        total: Expression | None = None
        inside = 0
        for _ in range(terms):
            place = int(random.integers(columns))
            term: Expression = Number(float(f"{random.uniform(0.5, 3.0):.3g}"))
            if random.random() < 0.7:
                text, low, high = FUNCTIONS[int(random.integers(len(FUNCTIONS)))]
                constant = f"{random.uniform(low, high):.3g}"
                term = mul(term, parse(text.replace("k", constant).replace("u", NAMES[place]), list(NAMES)))
                inside += 1
            others = [other for other in range(columns) if other != place]
            for other in random.permutation(others)[: int(random.integers(0, 3))]:
                term = mul(term, power(Variable(int(other)), Number(int(random.choice([1, 1, 1, 2, -1])))))
            total = term if total is None else add(total, term)
        if total is not None and inside and len(variables(total)) == columns:
            return total


def main() -> None:
    """Solve a table of each law and count."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=24)
    parser.add_argument("--rows", type=int, default=120)
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    right = verified = wrong = 0
    for number in range(options.tables):
        random = np.random.default_rng([options.seed, number])
        columns = int(random.integers(2, 5))
        law = draw_law(random, columns, int(random.integers(2, 4)))
        inputs = random.uniform(LOW, HIGH, (options.rows, columns))
        clean = evaluate(law, inputs)
        target = clean + options.noise * clean.std() * random.standard_normal(options.rows)
        begin = time.process_time()
        best = solve(inputs, target, names=list(NAMES[:columns]), steps=options.steps).best
        same = best is not None and is_law(best.expression, inputs, clean)
        right += same
        if best is not None and best.verdict == "verified":
            verified += same
            wrong += not same
        print(
            f"{number:3d} {'law' if same else '-':4s} {time.process_time() - begin:5.1f} s  "
            f"{to_text(law, list(NAMES))}   {'' if best is None or same else best.text}",
            flush=True,
        )
    print(
        f"{right} of {options.tables} are the law; verified: {verified} laws, {wrong} others "
        f"({options.rows} rows, noise {options.noise:g}, {options.steps} steps, seed {options.seed})"
    )


if __name__ == "__main__":
    main()
