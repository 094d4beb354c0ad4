"""What a run of training begins with: an earlier checkpoint, weights that exist, or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from physdiffuser.config import ModelConfig, TrainingConfig
from physdiffuser.errors import FileError, UsageError
from physdiffuser.models.checkpoint import load_model
from physdiffuser.models.checkpoint_files import DESCRIPTION
from physdiffuser.models.shipped import shipped, weights_folder
from physdiffuser.training.checkpoints import Checkpoint, differences, load_latest, newest_step
from physdiffuser.training.metrics import has_rows
from physdiffuser.training.optimisers import KEPT

CHECKPOINTS = "checkpoints"
MAY_CHANGE = {
    "out",
    "steps",
    "checkpoint_every",
    "keep",
    "log_every",
    "validate_every",
    "threads",
    "device",
    "graphs",
}
"""Settings that may differ when a run is continued."""


def model_folder(source: str) -> Path | None:
    """Folder of the weights that ship under a name, or of a model; None where there is no model."""
    folder = weights_folder() / source if source in shipped() else Path(source)
    return folder if (folder / DESCRIPTION).is_file() else None


def earlier_weights(source: str, config: ModelConfig) -> Checkpoint:
    """Parameters of a run (the `average` of a checkpoint), of a folder of weights, or of weights that ship.

    Raises
    ------
    FileError
        If there is neither an intact checkpoint nor a model.
    """
    folder = model_folder(source)
    if folder is not None:
        parts = [part for part in ("diffusion", "autoregressive") if getattr(config, part) is not None]
        return Checkpoint(0, {"average": dict(load_model(folder, parts).state_dict())}, {})
    found = load_latest(Path(source) / CHECKPOINTS)
    if found is None:
        raise FileError(f"start_from: no complete checkpoint and no weights in '{source}'")
    return found


def checkpoint_to_resume(folder: Path, config: TrainingConfig) -> Checkpoint | None:
    """The newest intact checkpoint of the run in a folder; None if it was stopped before the first.

    Raises
    ------
    FileError
        If every checkpoint is damaged.
    UsageError
        If the run has another configuration; the message names each difference.
    """
    checkpoint = load_latest(folder / CHECKPOINTS)
    if checkpoint is None:
        return None
    changed = [
        f"{name} ({before!r}, now {now!r})"
        for name, before, now in differences(checkpoint.state.get("config"), config.model_dump(mode="json"))
        if name not in MAY_CHANGE
    ]
    if changed:
        raise UsageError(
            f"the run in '{folder}' was started with another configuration; changed: "
            f"{', '.join(changed)}. Restore it, or start afresh with another 'out'"
        )
    return checkpoint


def check_unused(folder: Path) -> None:
    """Refuse a folder that holds a run already.

    Raises
    ------
    UsageError
        If it has checkpoints or metrics.
    """
    steps = newest_step(folder / CHECKPOINTS)
    if steps is not None or has_rows(folder):
        what = "metrics of a run" if steps is None else f"a run of {steps} steps"
        raise UsageError(
            f"'{folder}' already holds {what}; continue it with --resume, or choose another 'out'"
        )


def damage_messages(checkpoint: Checkpoint) -> list[str]:
    """Warnings that name the damaged file of each newer checkpoint."""
    return [
        f"a damaged checkpoint is skipped: {message}. The checkpoint of step {checkpoint.step} is used"
        for message in checkpoint.damaged
    ]


def restore_moments(
    optimisers: Sequence[torch.optim.Optimizer], model: nn.Module, moments: dict[str, Tensor]
) -> None:
    """Give optimisers the state that a checkpoint holds."""
    by_parameter = {id(p): name for name, p in model.named_parameters()}
    for optimiser in optimisers:
        for parameter in (p for group in optimiser.param_groups for p in group["params"]):
            name = by_parameter[id(parameter)]
            kept = {key: moments[f"{name}.{as_}"] for key, as_ in KEPT.items() if f"{name}.{as_}" in moments}
            if kept:
                # The number of steps stays where fused AdamW wants it.
                optimiser.state[parameter] = {
                    key: tensor.clone() if key == "step" else tensor.to(parameter.device)
                    for key, tensor in kept.items()
                }
