"""Damage training checkpoints in many ways and resume from them.

    python tools/stress_checkpoints.py --count 1000 --commands 100

Of a small run with three checkpoints, files of the newest one, two or three are damaged. Resuming must use
the newest checkpoint that was left intact, bit for bit, and name the damaged file of each newer one. If none
is intact, the error must name a file of each. Every few cases the command itself is run as well, for its exit
code and its messages. The exit code is 1 if anything was not as it must be.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "training")]

import small_runs  # noqa: E402

from physdiffuser.cli.entry import main as physdiffuser  # noqa: E402
from physdiffuser.config import parse_training_config  # noqa: E402
from physdiffuser.errors import FileError  # noqa: E402
from physdiffuser.training import loop  # noqa: E402
from physdiffuser.training.checkpoints import GROUPS, Checkpoint, load_latest  # noqa: E402

STEPS = 3
FILES = ("state.json", *(f"{group}.safetensors" for group in GROUPS))
Damage = Callable[[Path, random.Random], None]


def settings(out: Path) -> dict[str, Any]:
    """A configuration whose steps take a tenth of a second, with a checkpoint after each."""
    return small_runs.settings(out, steps=STEPS, batch=4, checkpoint_every=1, keep=STEPS)


def _file(step: Path, source: random.Random) -> Path:
    return step / source.choice(FILES)


def _other(step: Path, source: random.Random) -> Path:
    """An intact checkpoint of another step."""
    originals = step.parents[2] / "original" / step.parent.name
    return source.choice([path for path in sorted(originals.glob("step-*")) if path.name != step.name])


def truncate(step: Path, source: random.Random) -> None:
    """Cut a file off."""
    path = _file(step, source)
    data = path.read_bytes()
    path.write_bytes(data[: source.randrange(len(data))])


def flip(step: Path, source: random.Random) -> None:
    """Change one to three bits."""
    path = _file(step, source)
    data = bytearray(path.read_bytes())
    for place in source.sample(range(len(data)), source.randint(1, 3)):
        data[place] ^= 1 << source.randrange(8)
    path.write_bytes(bytes(data))


def zero_fill(step: Path, source: random.Random) -> None:
    """Fill a range with zeros, as after a power cut."""
    path = _file(step, source)
    data = bytearray(path.read_bytes())
    start = source.randrange(len(data))
    end = source.randint(start + 1, len(data))
    data[start:end] = bytes(end - start)
    path.write_bytes(bytes(data))


def extend(step: Path, source: random.Random) -> None:
    """Append bytes."""
    path = _file(step, source)
    path.write_bytes(path.read_bytes() + source.randbytes(source.randint(1, 5000)))


def swap(step: Path, source: random.Random) -> None:
    """Take a file from another checkpoint, or exchange two files."""
    if source.random() < 0.5:
        path = _file(step, source)
        shutil.copy(_other(step, source) / path.name, path)
        return
    first, second = source.sample(FILES, 2)
    kept = (step / first).read_bytes()
    shutil.copy(step / second, step / first)
    (step / second).write_bytes(kept)


def stale(step: Path, source: random.Random) -> None:
    """Take the description, or everything, from another checkpoint."""
    other = _other(step, source)
    for name in FILES if source.random() < 0.5 else FILES[:1]:
        shutil.copy(other / name, step / name)


def rewrite(step: Path, source: random.Random) -> None:
    """Change one number in the description, which stays valid JSON."""
    path = step / FILES[0]
    state = json.loads(path.read_text(encoding="utf-8"))
    key = source.choice(["seconds", "step", "seed", "rate"])
    if key in state:
        state[key] += source.randint(1, 9)
    elif key == "seed":
        state["config"]["seed"] += 1
    else:
        state["config"]["optimiser"]["rate"] *= 2
    path.write_text(json.dumps(state, indent=2) + "\n", encoding="utf-8")


def remove(step: Path, source: random.Random) -> None:
    """Delete a file, or put a folder or an endless device in its place."""
    path = _file(step, source)
    path.unlink()
    if source.random() < 0.3:
        path.mkdir()
    elif source.random() < 0.3:
        path.symlink_to("/dev/zero")


DAMAGES: tuple[Damage, ...] = (truncate, flip, zero_fill, extend, swap, stale, rewrite, remove)


def _content(step: Path) -> dict[str, bytes | None]:
    return {name: (step / name).read_bytes() if (step / name).is_file() else None for name in FILES}


def damage(step: Path, source: random.Random) -> str:
    """Damage a checkpoint in a random way, until something differs; returns the name of the way."""
    before = _content(step)
    while True:
        chosen = source.choice(DAMAGES)
        chosen(step, source)
        if _content(step) != before:
            return chosen.__name__


def _equal(first: Checkpoint, second: Checkpoint) -> bool:
    return (
        first.step == second.step
        and first.state == second.state
        and all(first.tensors[group].keys() == second.tensors[group].keys() for group in GROUPS)
        and all(
            torch.equal(tensor, second.tensors[group][name])
            for group in GROUPS
            for name, tensor in first.tensors[group].items()
        )
    )


def check_reading(checkpoints: Path, intact: Sequence[Checkpoint], damaged: int) -> str | None:
    """What is wrong with reading after the newest `damaged` checkpoints were damaged; None if nothing is."""
    named = [f"step-{step:08d}/" for step in range(STEPS, STEPS - damaged, -1)]
    try:
        found = load_latest(checkpoints)
    except FileError as error:
        if damaged < STEPS:
            return f"refused an intact checkpoint: {error}"
        return None if all(name in str(error) for name in named) else f"does not name each file: {error}"
    except Exception as error:
        return f"traceback: {type(error).__name__}: {error}"
    if found is None or not any(_equal(found, checkpoint) for checkpoint in intact):
        return "accepted a damaged checkpoint"
    if found.step != STEPS - damaged:
        return f"used step {found.step}, not step {STEPS - damaged}"
    if not all(name in message for name, message in zip(named, found.damaged, strict=True)):
        return f"does not name each file: {found.damaged}"
    return None


def check_command(config: Path, damaged: int) -> str | None:
    """What is wrong with `train --resume`; None if nothing is."""
    messages = io.StringIO()
    with contextlib.redirect_stderr(messages), contextlib.redirect_stdout(messages):
        code = physdiffuser(["train", str(config), "--resume", "--quiet"])
    text = messages.getvalue()
    expected = 4 if damaged == STEPS else 0
    if code != expected:
        return f"exit code {code}, not {expected}: {text}"
    if "internal error" in text or "Traceback" in text:
        return f"traceback: {text}"
    if not all(f"step-{step:08d}/" in text for step in range(STEPS, STEPS - damaged, -1)):
        return f"does not name each file: {text}"
    return None


def stress(count: int, commands: int, seed: int, folder: Path) -> dict[str, Any]:
    """Run all cases; returns counts, and the first failures in words."""
    loop.benchmark_laws = list  # type: ignore[attr-defined]  # the laws to exclude do not matter here
    original, run = folder / "original", folder / "run"
    loop.Trainer(parse_training_config(settings(original), "stress")).run()
    config = folder / "config.json"
    config.write_text(json.dumps(settings(run)), encoding="utf-8")
    intact = []
    for step in range(STEPS, 0, -1):
        found = load_latest(original / "checkpoints")
        assert found is not None and found.step == step
        intact.append(found)
        shutil.move(original / "checkpoints" / f"step-{step:08d}", original / f"step-{step:08d}")
    for checkpoint in intact:
        name = f"step-{checkpoint.step:08d}"
        shutil.move(original / name, original / "checkpoints" / name)
    source = random.Random(seed)
    kinds: Counter[str] = Counter()
    failures: list[str] = []
    fallbacks = refused = 0
    for case in range(count):
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(original, run)
        damaged = source.choices((1, 2, 3), (6, 3, 1))[0]
        used = [damage(run / "checkpoints" / f"step-{STEPS - place:08d}", source) for place in range(damaged)]
        kinds.update(used)
        wrong = check_reading(run / "checkpoints", intact, damaged)
        if wrong is None and commands and case % max(1, count // commands) == 0:
            wrong = check_command(config, damaged)
        if wrong is not None:
            failures.append(f"case {case} ({', '.join(used)}): {wrong}")
        fallbacks += wrong is None and damaged < STEPS
        refused += wrong is None and damaged == STEPS
    return {
        "cases": count,
        "fallbacks that worked": fallbacks,
        "refused because none was intact": refused,
        "accepted wrongly": sum("accepted" in failure for failure in failures),
        "tracebacks": sum("traceback" in failure for failure in failures),
        "wrong exit codes": sum("exit code" in failure for failure in failures),
        "failures": len(failures),
        "damage": dict(sorted(kinds.items())),
        "first failures": failures[:10],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the counts as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=1000, help="cases")
    parser.add_argument("--commands", type=int, default=100, help="cases in which the command is run too")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        found = stress(chosen.count, chosen.commands, chosen.seed, Path(folder))
    print(json.dumps(found, indent=1))
    return 1 if found["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
