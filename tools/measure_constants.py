"""How often constants are set to special values, rightly and wrongly.

    python tools/measure_constants.py                     # 200 tables for each cell, seed 0
    python tools/measure_constants.py --tables 1000 --seed 7 --json runs/constants.json
    python tools/measure_constants.py --farthest 1 --most-odds 0.01      # another rule

Each table follows one of the forms below. Its constants are either arbitrary (the logarithm uniform between
0.1 and 100, exponents uniform between 0.2 and 3) or special (drawn from the list below). The true form is
fitted, and its constants are set to special values as `solve` sets them at the end. Rates are per constant:

* *arbitrary set*: arbitrary constants that were set to a special value, or tied to another constant (terms
  whose constant is compatible with 0 are dropped; these are not counted);
* *special set*: special constants that were set;
* *all right*, *wrong*: tables of special constants whose formula became the law to the last digit, and those
  that have no fitted constant left and are not the law.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from pathlib import Path

import numpy as np

from physdiffuser.expressions import Expression, Number, Parameter, evaluate, parse
from physdiffuser.expressions.tree import bind, substitute, walk
from physdiffuser.fitting import snap
from physdiffuser.fitting.exact_constants.odds import DEFAULT_RULE, SettingRule

# Parameters p1, p2, ...; e1 is an exponent. Columns x, y.
FORMS = (
    "p1*x*y",
    "p1*x/y**2",
    "p1*sqrt(x/y)",
    "p1*x**e1",
    "p1*x**e1*y",
    "p1*exp(-p2*x)",
    "p1*exp(-p2*x) + p3",
    "p1*x/(p2 + x)",
    "p1*x + p2*y",
    "p1*x**2 + p2*x + p3",
    "p1*sin(p2*x)",
    "p1/(1 + exp(-(x - p2)*y))",
    "p1*log(1 + p2*x*y)",
    "x/(p1 + p2*y)",
    "p1*sqrt(1 + p2*x**2)",
    "p1*x*exp(-x*y/p2)",
)
SPECIAL = (
    "2", "1/2", "3", "1/3", "4", "1/4", "3/2", "2/3", "4/3", "3/4", "5", "5/2", "6", "8", "1/8", "10",
    "pi", "2*pi", "4*pi", "pi/2", "4*pi/3", "1/(4*pi)", "1/(2*pi)", "sqrt(2)", "1/sqrt(2)", "sqrt(3)",
    "12", "16", "1/6", "1/12", "100", "3/5",
)  # fmt: skip
EXPONENTS = ("1/2", "3/2", "2", "3", "1/3", "2/3", "5/2", "1/4")
NOISE = (0.0, 0.001, 0.01)
ROWS = (40, 200, 1000)


def draw(form: str, special: bool, rng: np.random.Generator) -> tuple[Expression, list[float]]:
    """A form with parameters, and their true values."""
    names = [f"p{k}" for k in (1, 2, 3)] + ["e1"]
    tree = parse(form, ["x", "y", *names])
    used = sorted({node.index for node in walk(tree) if getattr(node, "index", -1) >= 2 and node.index < 6})
    number = {index: position for position, index in enumerate(used)}

    def rename(node: Expression) -> Expression | None:
        index = getattr(node, "index", None)
        return Parameter(number[index]) if index in number else None

    values: list[float] = []
    for index in used:
        exponent = index == 5
        if special:
            text = str(rng.choice(EXPONENTS if exponent else SPECIAL))
            values.append(float(evaluate(parse(text, []), np.zeros((1, 1)))[0]))
        elif exponent:
            values.append(float(rng.uniform(0.2, 3.0)))
        else:
            values.append(math.exp(rng.uniform(math.log(0.1), math.log(100.0))))
    return substitute(tree, rename), values


def table(
    skeleton: Expression, values: list[float], rows: int, noise: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray] | None:
    """Rows on which every constant matters, None where the law is not finite."""
    inputs = np.exp(rng.uniform(math.log(0.3), math.log(6.0), (rows, 2)))
    with np.errstate(all="ignore"):
        clean = evaluate(bind(skeleton, values), inputs)
    if not np.isfinite(clean).all() or clean.std() == 0:
        return None
    return inputs, clean + noise * clean.std() * rng.standard_normal(rows)


def measure(
    noise: float, rows: int, special: bool, tables: int, seed: int, rule: SettingRule = DEFAULT_RULE
) -> Counter[str]:
    """Counts over tables of one cell."""
    counts: Counter[str] = Counter()
    kind = int(special)
    for number in range(tables):
        rng = np.random.default_rng([seed, number, rows, kind, int(noise * 1e6)])
        skeleton, values = draw(FORMS[number % len(FORMS)], special, rng)
        made = table(skeleton, values, rows, noise, rng)
        if made is None:
            continue
        inputs, target = made
        snapped = snap(bind(skeleton, values), inputs, target, rule=rule)
        fitted = any(isinstance(node, Number) and not node.exact for node in walk(snapped.expression))
        with np.errstate(all="ignore"):
            clean = evaluate(bind(skeleton, values), inputs)
            off = np.abs(evaluate(snapped.expression, inputs) - clean).max() / np.abs(clean).max()
        counts["tables"] += 1
        counts["constants"] += len(values)
        counts["set"] += min(sum("agrees with" in change for change in snapped.changes), len(values))
        counts["right"] += bool(off < 1e-12)
        counts["wrong"] += not fitted and not off < 1e-12
    return counts


def main() -> None:
    """Measure every cell and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=200, help="for each cell")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--farthest", type=float, default=DEFAULT_RULE.farthest, help="standard errors")
    parser.add_argument(
        "--most-odds", type=float, default=DEFAULT_RULE.most_odds, help="expected forms as near"
    )
    parser.add_argument("--rows", type=int, nargs="+", default=list(ROWS))
    parser.add_argument("--json", type=Path, help="also write the counts here")
    options = parser.parse_args()
    rule = SettingRule(options.most_odds, options.farthest)
    print("| noise | rows | arbitrary set, % | special set, % | tables all right, % | tables wrong, % |")
    print("|---|---|---|---|---|---|")
    results = []
    for noise in NOISE:
        for rows in options.rows:
            arbitrary = measure(noise, rows, False, options.tables, options.seed, rule)
            special = measure(noise, rows, True, options.tables, options.seed, rule)
            cells = (
                arbitrary["set"] / arbitrary["constants"],
                special["set"] / special["constants"],
                special["right"] / special["tables"],
                special["wrong"] / special["tables"],
            )
            print(
                f"| {noise:g} | {rows} | " + " | ".join(f"{100 * cell:.1f}" for cell in cells) + " |",
                flush=True,
            )
            results.append({"noise": noise, "rows": rows, "arbitrary": arbitrary, "special": special})
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
