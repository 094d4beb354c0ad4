"""What the stream of training tables holds: lengths and parts of laws, columns, rows, ranges.

    python tools/measure_stream.py base broad --tables 4000

Each argument is a recipe or a configuration. The tables are those that training sees, after laws that must
not be trained on were drawn again. `tables a second` is of the processor, one thread.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np

from physdiffuser.config import load_training_config
from physdiffuser.models.tokens.vocabulary import CONSTANT, VARIABLES, Vocabulary
from physdiffuser.training.decontamination import SHORT, Excluded
from physdiffuser.training.stream import Batch, LawStream, benchmark_laws

_BATCH = 64


def _inside(words: list[str], operators: set[str], after: str) -> bool:
    """Whether one of the operators stands somewhere behind another one."""
    return after in words and bool(operators & set(words[words.index(after) :]))


_PARTS: dict[str, Callable[[list[str]], bool]] = {
    "constants inside": lambda words: CONSTANT in words,
    "fitted or column exponents": lambda words: any(
        one == "pow" and words[place + 2] in {CONSTANT, *VARIABLES} for place, one in enumerate(words[:-2])
    ),
    "a sum below a line": lambda words: _inside(words, {"add", "sub"}, "div"),
    "exponentials": lambda words: "exp" in words,
    "logarithms": lambda words: "log" in words,
    "waves": lambda words: bool({"sin", "cos", "tan"} & set(words)),
    "damped waves": lambda words: "exp" in words and bool({"sin", "cos"} & set(words)),
}


def described(batches: Sequence[Batch], vocabulary: Vocabulary) -> dict[str, str]:
    """Figures of these tables."""
    laws = [
        vocabulary.decode([int(token) for token in row[:length]])
        for batch in batches
        for row, length in zip(batch.tokens, batch.lengths, strict=True)
    ]
    lengths = np.array([len(words) for words in laws])
    columns = np.array([len(set(words) & set(VARIABLES)) for words in laws])
    shown = np.concatenate([batch.used.sum(axis=1) for batch in batches])
    rows = np.repeat([batch.rows.shape[1] for batch in batches], [len(batch.rows) for batch in batches])
    spans, of_one = [], []
    for batch in batches:
        sizes = np.abs(batch.rows[:, :, :-1].astype(np.float64))
        with np.errstate(all="ignore"):
            ratio = sizes.max(axis=1) / sizes.min(axis=1)
        spans.append(ratio[batch.used])
        for table, used in zip(batch.rows, batch.used, strict=True):
            inputs = table[:, :-1][:, used]
            of_one.append(bool(((inputs >= 1.0) & (inputs <= 5.0)).all()))
    ratios = np.concatenate(spans)
    quantiles = [np.quantile(values, (0.1, 0.5, 0.9)) for values in (lengths, columns, rows, ratios)]
    figures = {
        f"laws of at most {SHORT} tokens": _percent(lengths <= SHORT),
        "tokens: 10 %, median, 90 %": _three(quantiles[0]),
        "columns of the law: 10 %, median, 90 %": _three(quantiles[1]),
        "tables with columns that do not matter": _percent(shown > columns),
        "rows: 10 %, median, 90 %": _three(quantiles[2]),
        "largest over smallest of a column: 10 %, median, 90 %": _three(quantiles[3]),
        "columns over more than a decade": _percent(ratios > 10.0),
        "tables with all inputs from 1 to 5": _percent(np.array(of_one)),
    }
    return figures | {
        name: _percent(np.array([test(words) for words in laws])) for name, test in _PARTS.items()
    }


def _percent(found: np.ndarray) -> str:  # type: ignore[type-arg]
    return f"{100.0 * float(found.mean()):.1f} %"


def _three(values: np.ndarray) -> str:  # type: ignore[type-arg]
    return ", ".join(f"{value:.3g}" for value in values)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("configs", nargs="+")
    parser.add_argument("--tables", type=int, default=4000)
    chosen = parser.parse_args(arguments)
    excluded = Excluded(benchmark_laws())
    found: list[dict[str, str]] = []
    for name in chosen.configs:
        config = load_training_config(name)
        vocabulary = Vocabulary()
        stream = LawStream(config.data, vocabulary, config.model.length, config.seed, excluded)
        began = time.process_time()
        batches = [stream.batch(number, _BATCH) for number in range(max(1, chosen.tables // _BATCH))]
        rate = len(batches) * _BATCH / (time.process_time() - began)
        found.append(described(batches, vocabulary) | {"tables a second": f"{rate:.0f}"})
    print(f"| | {' | '.join(chosen.configs)} |\n|{'---|' * (len(found) + 1)}")
    for figure in found[0]:
        print(f"| {figure} | {' | '.join(of[figure] for of in found)} |")


if __name__ == "__main__":
    main()
