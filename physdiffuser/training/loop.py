"""The training loop: both generators and their shared encoder at once.

One process, or several under `torchrun` (gloo on CPUs, nccl on GPUs). Every batch and every random draw is a
function of the seed, the step and the rank, so a run that was killed and resumed does what it
would have done otherwise, to the bit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from physdiffuser.config import TrainingConfig
from physdiffuser.errors import FileError, UsageError
from physdiffuser.models.checkpoint import load_model
from physdiffuser.models.network import LawModel
from physdiffuser.models.shipped import fast_bfloat16
from physdiffuser.models.tokens.vocabulary import Vocabulary
from physdiffuser.training.checkpoints import Checkpoint, save_checkpoint, save_model_of_step
from physdiffuser.training.decontamination import Excluded
from physdiffuser.training.graphs import GraphedGradients
from physdiffuser.training.metrics import append_row, keep_rows_until, open_board
from physdiffuser.training.microbatches import micro_losses, split
from physdiffuser.training.objectives import objective
from physdiffuser.training.optimisers import KEPT, build_optimisers
from physdiffuser.training.processes import Processes, choose_device
from physdiffuser.training.restoring import (
    CHECKPOINTS,
    check_unused,
    checkpoint_to_resume,
    damage_messages,
    earlier_weights,
    model_folder,
    restore_moments,
)
from physdiffuser.training.stream import Batch, LawStream, benchmark_laws

VALIDATION = 1_000_000
Progress = Callable[[int, dict[str, float]], None]


def learning_rate(config: TrainingConfig, step: int) -> float:
    """Rate at a step: linear warm-up, then half a cosine down to the final share, or a cooldown."""
    rate = config.optimiser
    if step < rate.warmup:
        return rate.rate * (step + 1) / rate.warmup
    if rate.cooldown:
        left = min(1.0, (config.steps - step) / (rate.cooldown * config.steps))
        return rate.rate * (rate.final + (1.0 - rate.final) * max(0.0, left))
    done = min(1.0, (step - rate.warmup) / max(1, config.steps - rate.warmup))
    return rate.rate * (rate.final + (1.0 - rate.final) * 0.5 * (1.0 + math.cos(math.pi * done)))


@dataclass
class Trainer:
    """A run of training.

    Parameters
    ----------
    resume
        Go on from the newest intact checkpoint in the output folder.

    Attributes
    ----------
    step
        Optimiser steps done.
    warnings
        What the user has to know about the files that were read.
    """

    config: TrainingConfig
    resume: bool = False
    step: int = field(default=0, init=False)
    warnings: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        config = self.config
        if config.threads:
            torch.set_num_threads(config.threads)
        self.device = choose_device(config.device)
        self.processes = Processes.join(self.device)
        self.folder = Path(config.out)
        self.vocabulary = Vocabulary.with_names() if config.data.chains else Vocabulary()
        torch.manual_seed(config.seed)
        self.model = LawModel(config.model, self.vocabulary).to(self.device)
        for name, parameter in self.model.named_parameters():
            parameter.requires_grad_(not (config.frozen and name.startswith(config.frozen)))
        self.average = {name: tensor.detach().clone() for name, tensor in self.model.named_parameters()}
        learning = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        self.parameters = list(learning.values())
        self.optimisers = build_optimisers(learning, config.optimiser)
        self.teacher = None if config.teacher is None else self._teacher(config.teacher)
        self.graphs: GraphedGradients | None = None
        if config.graphs and self.device.type == "cuda":
            written = self.teacher is None
            self.graphs = GraphedGradients(
                self.model, lambda model, micro: micro_losses(model, config, micro, self.teacher, written)
            )
        self.excluded = Excluded(benchmark_laws())
        self.stream = LawStream(config.data, self.vocabulary, config.model.length, config.seed, self.excluded)
        self.seconds = 0.0
        self._validation: list[Batch] = []
        self._restore()
        leads = config.tensorboard and self.processes.rank == 0
        self.board: Any = open_board(self.folder / "tensorboard", self.step + 1) if leads else None

    def _teacher(self, source: str) -> LawModel:
        folder = model_folder(source)
        if folder is None:
            raise FileError(f"teacher: no weights in '{source}'")
        return load_model(folder, (), self.device.type)

    def _restore(self) -> None:
        checkpoint = None
        if self.resume:
            checkpoint = checkpoint_to_resume(self.folder, self.config)
        else:
            check_unused(self.folder)
        if checkpoint is not None:
            self.warnings += damage_messages(checkpoint)
            self._load_weights(checkpoint.tensors["weights"], checkpoint.tensors["average"])
            restore_moments(self.optimisers, self.model, checkpoint.tensors["optimiser"])
            self.step = checkpoint.step
            self.seconds = float(checkpoint.state.get("seconds", 0.0))
        elif self.config.start_from is not None:
            self._start_from(self.config.start_from)
        if self.processes.rank == 0:
            keep_rows_until(self.folder, self.step)

    def _load_weights(self, weights: dict[str, Tensor], average: dict[str, Tensor]) -> None:
        try:
            self.model.load_state_dict(weights, strict=True)
        except RuntimeError as error:
            raise UsageError(
                "the stored weights do not fit the configured model, or were written by another version: "
                f"{' '.join(str(error).split())[:300]}"
            ) from error
        self.average = {name: tensor.to(self.device) for name, tensor in average.items()}

    def _start_from(self, source: str) -> None:
        checkpoint = earlier_weights(source, self.config.model)
        self.warnings += damage_messages(checkpoint)
        found = checkpoint.tensors["average"]
        initial = self.model.state_dict()
        for name in initial:
            if not name.startswith(self.config.fresh) and name in found:
                initial[name] = found[name]
        missing = [name for name in initial if name not in found and not name.startswith(self.config.fresh)]
        if missing:
            raise UsageError(
                f"start_from: '{source}' has no {', '.join(missing[:3])}"
                f"{' and others' if len(missing) > 3 else ''}; name what is to begin afresh under 'fresh'"
            )
        self._load_weights(initial, {name: tensor.clone() for name, tensor in initial.items()})

    def save(self) -> None:
        """Write a checkpoint, and the moving average as a model that can be used."""
        if self.processes.rank:
            return
        moments: dict[str, Tensor] = {}
        for name, parameter in self.model.named_parameters():
            for optimiser in self.optimisers:
                for key, value in optimiser.state.get(parameter, {}).items():
                    moments[f"{name}.{KEPT[key]}"] = value
        tensors = {"weights": dict(self.model.state_dict()), "average": self.average, "optimiser": moments}
        state = {"config": self.config.model_dump(mode="json"), "seconds": self.seconds}
        save_checkpoint(self.folder / CHECKPOINTS, Checkpoint(self.step, tensors, state), self.config.keep)
        self._save_model()

    def _save_model(self) -> None:
        if self.processes.rank == 0:
            model = (self.config.model, self.vocabulary, self.average, self.notes())
            save_model_of_step(self.folder / "model", self.step, *model)

    def notes(self) -> dict[str, Any]:
        """What the model has seen, for its description."""
        sources = {"start_from": self.config.start_from, "teacher": self.config.teacher}
        return {
            **{name: source for name, source in sources.items() if source is not None},
            "steps": self.step,
            "tables": self.step * self.config.batch * self.processes.count,
            "seconds": round(self.seconds, 1),
            "seed": self.config.seed,
            "excluded_laws": self.excluded.long,
        }

    def _part(self, purpose: int = 0) -> int:
        return purpose + self.processes.rank

    def losses(
        self,
        batch: Batch,
        generator: torch.Generator,
        drop: float,
        hide: float = 0.0,
        written: bool = True,
    ) -> Iterator[tuple[float, dict[str, Tensor]]]:
        """Losses of each micro-batch, shortest laws first, with its share of the batch.

        Parameters
        ----------
        generator
            Source of masks and dropped conditions.
        drop
            Probability of hiding a table from the generators.
        hide
            Probability of hiding its summaries.
        written
            Whether the losses of the generators are wanted beside that of the memory, if there is a teacher.
        """
        fast = self.config.precision == "auto" and fast_bfloat16(self.device.type)
        autocast = fast or self.config.precision == "bf16"
        for share, micro in split(batch, self.config, generator, drop, hide):
            with torch.autocast(self.device.type, torch.bfloat16, enabled=autocast):
                found = micro_losses(self.model, self.config, micro.to(self.device), self.teacher, written)
            yield share, found

    def _generator(self, purpose: int) -> torch.Generator:
        generator = torch.Generator()
        generator.manual_seed((self.config.seed * 1_000_003 + self.step) * 64 + self._part() + purpose)
        return generator

    def train_step(self, batch: Batch) -> dict[str, Tensor]:
        """One optimiser step; returns losses and the norm of the gradient.

        They are tensors on the device: to read one makes a GPU wait for everything before it.
        """
        self.model.train()
        for group in (group for optimiser in self.optimisers for group in optimiser.param_groups):
            group["lr"] = learning_rate(self.config, self.step)
        for optimiser in self.optimisers:
            optimiser.zero_grad(set_to_none=True)
        sums: dict[str, Tensor] = {}
        for share, found in self._gradients(batch):
            for name, loss in found.items():
                part = share * loss.detach()
                sums[name] = sums[name] + part if name in sums else part
        self.processes.average(self.parameters)
        norm = nn.utils.clip_grad_norm_(self.parameters, self.config.optimiser.clip)
        # A step whose gradient is not finite is skipped, inside the optimisers so that a GPU need not wait.
        for optimiser in self.optimisers:
            optimiser.found_inf = (~torch.isfinite(norm)).float()  # type: ignore[attr-defined]
            optimiser.grad_scale = torch.ones_like(norm)  # type: ignore[attr-defined]
            optimiser.step()
        # A short memory at first, so that the average is not mostly the initial weights.
        decay = min(self.config.optimiser.ema, (1.0 + self.step) / (10.0 + self.step))
        with torch.no_grad():
            parameters = dict(self.model.named_parameters())
            averaged = [self.average[name] for name in parameters]
            torch._foreach_lerp_(averaged, list(parameters.values()), 1.0 - decay)
        self.step += 1
        return {**sums, "gradient": norm}

    def _gradients(self, batch: Batch) -> Iterator[tuple[float, dict[str, Tensor]]]:
        """Add the gradient of each micro-batch to that of the weights; its share and its losses."""
        draws, config = self._generator(0), self.config
        if self.graphs is not None:
            self.graphs.begin()
            for share, micro in split(batch, config, draws, config.drop_condition, config.hide_summaries):
                yield share, self.graphs.add(micro, share)
            return
        pieces = self.losses(
            batch, draws, config.drop_condition, config.hide_summaries, written=self.teacher is None
        )
        for share, found in pieces:
            (objective(found) * share).backward()  # type: ignore[no-untyped-call]
            yield share, found

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Losses of the moving average on laws of their own."""
        kept = {name: p.detach().clone() for name, p in self.model.named_parameters()}
        for name, parameter in self.model.named_parameters():
            parameter.copy_(self.average[name])
        self.model.eval()
        sums = self._validated(0.0)
        if self.config.hide_summaries:
            sums |= {f"{name}_rows_only": loss for name, loss in self._validated(1.0).items()}
        for name, parameter in self.model.named_parameters():
            parameter.copy_(kept[name])
        return sums

    def _validated(self, hide: float) -> dict[str, float]:
        size = self.config.micro_batch
        batches = max(1, self.config.validation_laws // size)
        if not self._validation:
            self._validation = [self.stream.batch(number, size, VALIDATION) for number in range(batches)]
        sums: dict[str, float] = {}
        generator = torch.Generator()
        generator.manual_seed(VALIDATION)
        for batch in self._validation:
            for share, found in self.losses(batch, generator, 0.0, hide):
                for name, loss in found.items():
                    sums[name] = sums.get(name, 0.0) + share * float(loss) / batches
        return sums

    def run(
        self,
        progress: Progress | None = None,
        minutes: float = math.inf,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """Train until the configured number of steps, writing metrics and checkpoints on the way.

        Parameters
        ----------
        progress
            Called with the step and its metrics, as often as they are logged.
        minutes
            Stop earlier than that many steps after this time, with a checkpoint; `resume` goes on from it.
        stopped
            Whether to stop after the current step, with a checkpoint. Several processes agree on it whenever
            metrics are logged.
        """
        config = self.config
        end = time.perf_counter() + 60.0 * minutes
        batches = self.stream.batches(self.step, config.batch, self._part())
        since, last = time.perf_counter(), self.step
        if self.step >= config.steps:
            # An earlier process may have been killed between its last checkpoint and its model.
            self._save_model()
        # What `progress` sets as the number of steps holds from then on.
        while self.step < self.config.steps:
            config = self.config
            began = time.perf_counter()
            metrics = self.train_step(next(batches))
            self.seconds += time.perf_counter() - began
            if self.step % config.log_every == 0 or self.step == config.steps:
                now = time.perf_counter()
                laws = (self.step - last) * config.batch * self.processes.count
                rate = learning_rate(config, self.step)
                losses = {name: float(value) for name, value in metrics.items()}
                losses |= {"rate": rate, "laws_per_second": laws / (now - since)}
                since, last = now, self.step
                self._log("train", losses)
                if progress is not None:
                    progress(self.step, losses)
            if self.step % config.validate_every == 0 or self.step == config.steps:
                self._log("validation", self.validate())
            # Clocks differ: a process that stopped alone would leave the others waiting for it.
            agree = self.processes.count == 1 or minutes < math.inf or self.step % config.log_every == 0
            late = agree and self.processes.any(stopped() or time.perf_counter() >= end, self.device)
            if self.step % config.checkpoint_every == 0 or self.step == config.steps or late:
                self.save()
            if late:
                break
        batches.close()  # type: ignore[attr-defined]

    def _log(self, kind: str, metrics: dict[str, float]) -> None:
        if self.processes.rank:
            return
        record = {"kind": kind, "step": self.step, "seconds": round(self.seconds, 3)}
        append_row(
            self.folder, {**record, **{name: float(f"{value:.6g}") for name, value in metrics.items()}}
        )
        if self.board is not None:
            for name, value in metrics.items():
                self.board.add_scalar(f"{kind}/{name}", value, self.step)
            self.board.flush()
