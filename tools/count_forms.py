"""Count the forms of the laws that the networks are trained on, for `physdiffuser.selection.form_prior`.

    python tools/count_forms.py --laws 200000

Benchmark laws are kept out as they are from the training (`physdiffuser.training.decontamination`).
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import physdiffuser.search
from physdiffuser.expressions import to_prefix
from physdiffuser.selection.form_prior import Event, events, take_apart
from physdiffuser.training.decontamination import Excluded
from physdiffuser.training.laboratory import LaboratorySampler
from physdiffuser.training.laws import LawSampler
from physdiffuser.training.stream import CHECK_FROM, benchmark_laws, target_skeleton


def count(laws: int, laboratory: float, seed: int) -> Counter[Event]:
    """Events in the forms of so many laws, a share of them laboratory laws."""
    source = random.Random(seed)
    textbook, other = LawSampler(source), LaboratorySampler(source)
    excluded = Excluded(benchmark_laws())
    seen: Counter[Event] = Counter()
    done = 0
    while done < laws:
        law = (other if source.random() < laboratory else textbook).sample()
        skeleton = target_skeleton(law)
        if len(to_prefix(skeleton)) >= CHECK_FROM and excluded.contains(skeleton):
            continue
        seen.update(events(take_apart(skeleton)))
        done += 1
    return seen


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--laws", type=int, default=200_000)
    parser.add_argument("--laboratory", type=float, default=0.35, help="share of laboratory laws")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument(
        "--out", type=Path, default=Path(physdiffuser.search.__file__).parent / "usual_forms.json"
    )
    chosen = parser.parse_args(arguments)
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    for (place, event), often in sorted(count(chosen.laws, chosen.laboratory, chosen.seed).items()):
        counts["|".join(place)][event] = often
    document = {
        "laws": chosen.laws,
        "laboratory": chosen.laboratory,
        "seed": chosen.seed,
        "counts": counts,
    }
    chosen.out.write_text(json.dumps(document, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
