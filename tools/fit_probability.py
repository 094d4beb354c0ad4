"""Fit the probability of a law to the results of `tools/measure_trust.py`, and say how well it is calibrated.

    python tools/fit_probability.py docs/results/trust/seed_{4,5,10,11}.jsonl
    python tools/fit_probability.py --check docs/results/trust/seed_12.jsonl

Prints the record for `physdiffuser/finalize/evidence/probability.py` and, by ten-fold cross-validation, the
calibration in ten bins and what each threshold of `verified` would give. `--check` measures the record that
is in the package instead. Needs scikit-learn.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import fields
from pathlib import Path

import numpy as np

from physdiffuser.finalize.evidence.figures import LawEvidence
from physdiffuser.finalize.evidence.probability import FEATURES, MODEL, features


def load(paths: list[Path]) -> tuple[np.ndarray, np.ndarray, list[LawEvidence]]:
    """Features, shape (tables, features), whether the answer was the law, and the figures."""
    lines = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    lines = [line for line in lines if line["evidence"] and line["status"] == "approximate"]
    known = [field.name for field in fields(LawEvidence)]
    lines = [line for line in lines if line["evidence"].keys() >= set(known)]
    evidence = [LawEvidence(**{name: line["evidence"][name] for name in known}) for line in lines]
    right = np.array([line["is_law"] for line in lines], dtype=float)
    return np.array([features(one) for one in evidence]), right, evidence


def report(probability: np.ndarray, right: np.ndarray) -> None:
    """Print the calibration and the thresholds."""
    error = 0.0
    print("| probability | tables | the law, % | mean probability, % |\n|---|---|---|---|")
    for low in np.arange(0.0, 1.0, 0.1):
        some = (probability >= low) & ((probability < low + 0.1) | (low > 0.85))
        if some.any():
            share, mean = float(right[some].mean()), float(probability[some].mean())
            error += some.mean() * abs(share - mean)
            print(f"| {low:.1f} to {low + 0.1:.1f} | {some.sum()} | {100 * share:.0f} | {100 * mean:.0f} |")
    print(
        f"\nexpected calibration error {error:.3f}, {len(right)} tables, {100 * right.mean():.0f} % the law\n"
    )
    print("| threshold | verified | not the law | laws that are verified, % |\n|---|---|---|---|")
    for threshold in (0.7, 0.8, 0.85, 0.9, 0.95):
        some = probability >= threshold
        found = 100 * right[some].sum() / max(right.sum(), 1)
        print(f"| {threshold:g} | {some.sum()} | {int((1 - right[some]).sum())} | {found:.0f} |")


def main() -> None:
    """Fit and report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--check", action="store_true", help="measure the record in the package")
    options = parser.parse_args()
    values, right, evidence = load(options.results)
    if options.check:
        report(np.array([MODEL.of(one) for one in evidence]), right)
        return
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    means, deviations = values.mean(axis=0), values.std(axis=0)
    unit = (values - means) / deviations
    model = LogisticRegression(C=1.0)
    report(cross_val_predict(model, unit, right, cv=10, method="predict_proba")[:, 1], right)
    model.fit(unit, right)
    print(f"\n# {', '.join(FEATURES)}\nMODEL = ProbabilityModel(")
    for numbers in (means, deviations, model.coef_[0]):
        print(f"    ({', '.join(f'{number:.4g}' for number in numbers)}),")
    print(f"    {model.intercept_[0]:.4g},\n)")


if __name__ == "__main__":
    main()
