"""Make the pictures and the numbers of docs/interpretability.md again, from the weights that ship.

    python docs/make_interpretability.py                 # all; some ten minutes of one core
    python docs/make_interpretability.py I.24.6 biased   # some, by the names below

Pictures go to docs/interpretability; tables are printed as Markdown, to be put into the page together with
the words about them, which have to be read again when the numbers change.
"""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "interpretability"
DPI = "110"


@dataclass(frozen=True)
class View:
    """One run of `physdiffuser inspect`, and the pictures of it that the page shows."""

    words: str
    pictures: dict[str, str] = field(default_factory=dict)


VIEWS = {
    "I.12.2": View("--equation I.12.2 --remask 0.3", {"trajectory": "trajectory"}),
    "I.24.6": View(
        "--equation I.24.6", {"decoder-cross": "decoder-cross", "encoder-block-1": "encoder-block-1"}
    ),
    "physics-slice": View(
        "--equation I.24.6 --attention physics-slice", {"slices-compared": "slices", "slices-cost": "cost"}
    ),
    "biased": View(
        "--equation I.24.6 --attention biased", {"bias-1": "bias", "bias-gated-learned": "bias-learned"}
    ),
    "tiers": View(
        "--suite tiers --sample 120 --trajectories 4", {"own-column": "own-column", "tree": "tree"}
    ),
    "fsred": View("--suite fsred --sample 30 --trajectories 1"),
    "tiers-physics-slice": View("--suite tiers --sample 30 --trajectories 1 --attention physics-slice"),
    "tiers-biased": View("--suite tiers --sample 30 --trajectories 1 --attention biased"),
}


def make(view: View) -> dict[str, Any]:
    """Run one inspection and take its pictures; returns its numbers."""
    from physdiffuser.cli import main

    with tempfile.TemporaryDirectory() as name:
        with contextlib.redirect_stdout(io.StringIO()):
            code = main(["inspect", *view.words.split(), "--dpi", DPI, "--quiet", "--out", name])
        if code:
            raise SystemExit(code)
        FOLDER.mkdir(exist_ok=True)
        for picture, kept in view.pictures.items():
            shutil.copyfile(Path(name, f"{picture}.png"), FOLDER / f"{kept}.png")
        numbers: dict[str, Any] = json.loads(Path(name, "inspection.json").read_text(encoding="utf-8"))
    return numbers


def shown(found: list[float | None], percent: bool = False) -> str:
    """A mean and its interval."""
    scale, digits = (100.0, 1) if percent else (1.0, 2)
    if any(value is None for value in found):
        return ""
    middle, low, high = (f"{scale * float(value or 0.0):.{digits}f}" for value in found)
    return f"{middle}{' %' if percent else ''} [{low}, {high}]"


def table(header: list[str], lines: list[list[str]]) -> str:
    """A table in Markdown."""
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, ["---"] * len(header), *lines])


def tables(numbers: dict[str, Any]) -> list[str]:
    """The tables of one inspection, as Markdown."""
    if "suite" not in numbers:
        costs = dict(numbers.get("slices_seconds", {}))
        rows = [f"{count:,}" for count in costs.pop("rows", [])]
        lines = [[name, *(f"{1e3 * value:.3g}" for value in values)] for name, values in costs.items()]
        return [table(["milliseconds of rows", *rows], lines)] if costs else []
    sides = ("trained", "random")
    found = []
    own = numbers["own_column"]
    lines = [[f"{part}, {side}", *map(shown, own[part][side])] for part in own for side in sides]
    if lines:
        layers = [f"layer {layer + 1}" for layer in range(len(lines[0]) - 1)]
        found.append(table(["weight on the own column", *layers], lines))
    lines = [
        [f"{kind} ({part})", *(shown(values[side]) for side in sides)]
        for part, kinds in numbers["received"].items()
        for kind, values in kinds.items()
    ]
    found.append(table(["receives", *sides], lines))
    tiers = list(next(iter(numbers["entropy"].values())))
    lines = [
        [part, *(shown(groups[tier]["trained"]) for tier in tiers), shown(groups["all"]["random"])]
        for part, groups in numbers["entropy"].items()
    ]
    found.append(table(["entropy", *tiers, "all, random"], lines))
    lines = [
        [f"{part}, {side}, {baseline}", *counted(heads[side])]
        for part, baselines in numbers["tree"].items()
        for baseline, heads in baselines.items()
        for side in sides
    ]
    found.append(table(["tree", "above 0", "below 0", "largest surplus"], lines))
    lines = [[kind, *(shown(values[side]) for side in sides)] for kind, values in numbers["order"].items()]
    found.append(table(["decided after this share of the steps", *sides], lines))
    lines = [
        [what, *(shown(values[side], percent=True) for side in sides)]
        for what, values in numbers["encoder"].items()
    ]
    found.append(table(["share of the attention that is not even", *sides], lines))
    return found


def counted(heads: list[list[float | None]]) -> list[str]:
    """Heads whose interval lies above and below 0, and the one with the largest mean."""
    known = [(one[0] or 0.0, one[1] or 0.0, one[2] or 0.0) for one in heads]
    best = max(range(len(known)), key=lambda place: known[place][0])
    above, below = sum(low > 0 for _, low, _ in known), sum(high < 0 for _, _, high in known)
    return [str(above), str(below), f"{shown(heads[best])} (number {best + 1} of {len(heads)})"]


if __name__ == "__main__":
    chosen = sys.argv[1:] or list(VIEWS)
    unknown = sorted(set(chosen) - set(VIEWS))
    if unknown:
        sys.exit(f"no view is called {unknown[0]}; there are {', '.join(VIEWS)}")
    for one in chosen:
        print(f"\n## {one}: physdiffuser inspect {VIEWS[one].words}\n")
        print("\n\n".join(tables(make(VIEWS[one]))), flush=True)
