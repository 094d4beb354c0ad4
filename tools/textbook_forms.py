"""Search the laws of tests/report/textbook_forms.csv and compare the printed forms with those of a textbook.

    python tools/textbook_forms.py                         # all laws, 200 rows without noise, 20 steps each
    python tools/textbook_forms.py --noise 0.001 --only 5  # every fifth

Each law that is found in another form is printed with both forms. The last line counts the laws found up to
rounding or noise, those in the form of the table, and the mean ratio of the complexities.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from physdiffuser.data.arrays import dataset_from_arrays
from physdiffuser.expressions import complexity, evaluate
from physdiffuser.expressions.printing.format import to_text
from physdiffuser.pipeline import solve_dataset

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "report"))


def main() -> None:
    """Run the laws and print what differs."""
    from test_textbook_forms import LAWS

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--noise", type=float, default=0.0, help="share of the target's deviation")
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--only", type=int, default=1, help="every n-th law")
    options = parser.parse_args()
    found, written, verified, ratios = 0, 0, 0, []
    laws = LAWS[:: options.only]
    for number, law in enumerate(laws):
        inputs = law.inputs(options.rows)
        clean = evaluate(law.tree, inputs)
        spread = options.noise * clean.std()
        target = clean + spread * np.random.default_rng(number).standard_normal(options.rows)
        best = solve_dataset(
            dataset_from_arrays(inputs, target, names=law.columns), steps=options.steps, seed=number
        ).best
        if best is None:
            continue
        close = np.abs(evaluate(best.expression, inputs) - clean).max() <= max(
            spread, 1e-8 * abs(clean).max()
        )
        text = law.named(best.expression) if not options.noise else to_text(best.expression, law.columns, 4)
        found += close
        written += text == law.text
        verified += best.verdict == "verified"
        if close:
            ratios.append(complexity(best.expression) / complexity(law.tree))
        if text != law.text:
            mark = "another form" if close else "not found"
            print(f"{mark}: {law.name}: {law.text} -> {text} ({best.verdict})", flush=True)
    print(
        f"{len(laws)} laws, {found} found, {written} in the form of the table, {verified} verified, "
        f"mean ratio of complexities {np.mean(ratios):.3f}"
    )


if __name__ == "__main__":
    main()
