"""`physdiffuser train`: train the learned generators from a configuration."""

from __future__ import annotations

import contextlib
import math
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from physdiffuser.cli.process import messages
from physdiffuser.cli.process.stdout import reserved_stdout

if TYPE_CHECKING:
    from physdiffuser.training.loop import Trainer


@click.command(short_help="Train the learned generators.")
@click.argument("config", metavar="CONFIG")
@click.option("--resume", is_flag=True, help="Continue from the newest checkpoint in the output folder.")
@click.option("--out", metavar="DIR", help="Folder for metrics, checkpoints and the model; replaces `out`.")
@click.option(
    "--minutes",
    type=click.FloatRange(min=0.0, min_open=True),
    metavar="N",
    help="Stop with a checkpoint after N minutes at the latest; --resume goes on from it.",
)
@click.option("--quiet", is_flag=True, help="No progress bar.")
@reserved_stdout()
def train(config: str, resume: bool, out: str | None, minutes: float | None, quiet: bool) -> int:
    """Train the encoder and the generators on synthetic laws.

    CONFIG is a YAML file, or a recipe that ships: tiny, small, base or broad. On several processes:
    `torchrun --nproc-per-node 2 -m physdiffuser train CONFIG`.
    """
    from physdiffuser.config import load_training_config

    settings = load_training_config(config)
    if out is not None:
        settings = settings.model_copy(update={"out": out})
    folder = Path(settings.out)
    # Several processes share the folder; the first of them holds it.
    leader = int(os.environ.get("RANK", "0")) == 0
    with _held(folder) if leader else contextlib.nullcontext():
        # Everything above answers in a fraction of a second; torch is needed only from here on.
        from physdiffuser.training.loop import Trainer

        trainer = Trainer(settings, resume=resume)
        if leader:
            for warning in trainer.warnings:
                messages.warning(warning)
        signal_number = _run(trainer, settings.steps, minutes, quiet or not leader)
        if leader and trainer.step < settings.steps:
            messages.note(f"stopped after step {trainer.step} of {settings.steps}; continue with --resume")
        if leader:
            messages.note(f"trained {trainer.step} steps; the model is in '{folder / 'model'}'")
        trainer.processes.leave()
    return 128 + signal_number if signal_number else 0


@contextlib.contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Hold the output folder; it is made if it does not exist, and removed if it stays empty.

    Raises
    ------
    FileError
        If it cannot be made or written to, or another process holds it.
    """
    from physdiffuser.io.folder_lock import FolderLock
    from physdiffuser.io.output_folder import make_missing, refused, remove_empty

    try:
        made = make_missing(folder)
    except OSError as error:
        raise refused(folder, error) from error
    try:
        with FolderLock(folder):
            yield
    finally:
        remove_empty(made)


def _run(trainer: Trainer, steps: int, minutes: float | None, quiet: bool) -> int:
    """Train with a progress bar; returns the number of the signal that stopped it, or 0."""
    from tqdm import tqdm

    with (
        tqdm(total=steps, initial=trainer.step, unit="step", disable=True if quiet else None) as bar,
        _StopRequest() as request,
    ):

        def progress(step: int, metrics: dict[str, float]) -> None:
            bar.n = step
            names = ("autoregressive", "diffusion")
            parts = [f"{name} {metrics[name]:.3f}" for name in names if name in metrics]
            bar.set_postfix_str(", ".join([*parts, f"{metrics['laws_per_second']:.0f} laws/s"]))

        limit = math.inf if minutes is None else minutes
        trainer.run(progress, limit, lambda: request.signal_number != 0)
    return request.signal_number


class _StopRequest:
    """Ctrl-C and SIGTERM: the first stops after the current step, the second ends the process.

    In the middle of a step the weights are neither those before it nor those after it, so that a checkpoint
    can be written only between two steps.
    """

    def __init__(self) -> None:
        self.signal_number = 0
        self._previous: dict[int, Any] = {}

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        if self.signal_number:
            os._exit(128 + number)  # files are written in one step, so there is nothing to tidy
        self.signal_number = number
        # Not through a buffered stream, which the interrupted code may be writing to.
        os.write(2, b"\nstopping after this step; a second signal ends the program without a checkpoint\n")

    def __enter__(self) -> _StopRequest:
        numbers = (signal.SIGINT, signal.SIGTERM)
        self._previous = {number: signal.signal(number, self._arrived) for number in numbers}
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
