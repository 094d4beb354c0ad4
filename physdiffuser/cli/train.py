"""`physdiffuser train`: train the learned generators from a configuration."""

from __future__ import annotations

import math

import click

from physdiffuser.cli import messages


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
def train(config: str, resume: bool, out: str | None, minutes: float | None, quiet: bool) -> None:
    """Train the encoder and the generators on synthetic laws.

    CONFIG is a YAML file, or the name of a recipe that ships: tiny, small or base. On several processes:
    `torchrun --nproc-per-node 2 -m physdiffuser train CONFIG`.
    """
    from physdiffuser.config import load_training_config

    settings = load_training_config(config)
    if out is not None:
        settings = settings.model_copy(update={"out": out})
    # Everything above answers in a fraction of a second; torch is needed only from here on.
    from tqdm import tqdm

    from physdiffuser.training.loop import Trainer

    trainer = Trainer(settings, resume=resume)
    leader = trainer.processes.rank == 0
    bar = tqdm(
        total=settings.steps, initial=trainer.step, unit="step", disable=True if quiet or not leader else None
    )

    def progress(step: int, metrics: dict[str, float]) -> None:
        bar.n = step
        parts = [f"{name} {metrics[name]:.3f}" for name in ("autoregressive", "diffusion") if name in metrics]
        bar.set_postfix_str(", ".join([*parts, f"{metrics['laws_per_second']:.0f} laws/s"]))

    try:
        trainer.run(progress, math.inf if minutes is None else minutes)
    except KeyboardInterrupt:
        trainer.save()
        if leader:
            messages.note(f"stopped after step {trainer.step}; continue with --resume")
        raise
    finally:
        bar.close()
    if leader:
        if trainer.step < settings.steps:
            messages.note(f"stopped after step {trainer.step} of {settings.steps}; continue with --resume")
        messages.note(f"trained {trainer.step} steps; the model is in '{trainer.folder / 'model'}'")
    trainer.processes.leave()
