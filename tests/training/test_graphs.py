"""Gradients summed by copies in bfloat16: what a GPU replays, here on a processor."""

from pathlib import Path

import pytest
import torch
from small_runs import config

from physdiffuser.models.features.statistics import _eliminated
from physdiffuser.training.graphs import GraphedGradients, room_for, write
from physdiffuser.training.loop import Trainer
from physdiffuser.training.microbatches import micro_losses, split


@pytest.fixture(name="trainer")
def _trainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trainer:
    monkeypatch.setattr("physdiffuser.training.loop.benchmark_laws", list)
    return Trainer(config(tmp_path / "run", steps=2, batch=16, micro_batch=8, window_step=8))


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(5)


def test_the_gradient_is_that_of_single_precision_but_for_rounding(trainer: Trainer) -> None:
    batch = trainer.stream.batch(0, 16)
    graphs = GraphedGradients(
        trainer.model, lambda model, micro: micro_losses(model, trainer.config, micro, None, True)
    )
    expected: dict[str, float] = {}
    for share, micro in split(batch, trainer.config, _generator(), 0.1, 0.0):
        found = micro_losses(trainer.model, trainer.config, micro, None, True)
        (share * (found["autoregressive"] + found["diffusion"])).backward()
        for name, loss in found.items():
            expected[name] = expected.get(name, 0.0) + share * float(loss.detach())
    exact = torch.cat([p.grad.flatten().clone() for p in trainer.parameters if p.grad is not None])
    for _ in range(2):  # The second step starts its sums again.
        graphs.begin()
        losses = [
            (share, graphs.add(micro, share))
            for share, micro in split(batch, trainer.config, _generator(), 0.1, 0.0)
        ]
    summed = torch.cat([p.grad.flatten() for p in trainer.parameters if p.grad is not None])
    assert summed.dtype == torch.float32
    assert torch.nn.functional.cosine_similarity(summed, exact, dim=0) > 0.995
    for name in ("autoregressive", "diffusion"):
        total = sum(share * float(found[name]) for share, found in losses)
        assert total == pytest.approx(expected[name], rel=0.02)


def test_rows_that_fill_up_a_table_change_no_loss(trainer: Trainer) -> None:
    trainer.model.eval()
    for _, micro in split(trainer.stream.batch(1, 8), trainer.config, _generator(), 0.0, 0.0):
        more = room_for(micro, torch.device("cpu"))
        more.rows.fill_(7.0)
        write(micro, more)
        rows = more.rows.shape[1]
        assert rows >= micro.rows.shape[1] and rows & (rows - 1) == 0
        plain, filled = (
            micro_losses(trainer.model, trainer.config, one, None, True) for one in (micro, more)
        )
        for name, loss in plain.items():
            torch.testing.assert_close(filled[name], loss, rtol=1e-4, atol=1e-5)


def test_elimination_solves_positive_definite_systems() -> None:
    columns = torch.randn(5, 30, 9, generator=_generator())
    gram = columns.transpose(1, 2) @ columns / 30 + 1e-3 * torch.eye(9)
    moment = torch.randn(5, 9, 1, generator=_generator())
    torch.testing.assert_close(
        _eliminated(gram, moment), torch.linalg.solve(gram, moment), rtol=1e-3, atol=1e-4
    )


def test_windows_are_multiples_of_the_step_or_the_whole_length(trainer: Trainer) -> None:
    pieces = list(split(trainer.stream.batch(2, 16), trainer.config, _generator(), 0.0, 0.0))
    assert sum(share for share, _ in pieces) == pytest.approx(1.0)
    for _, micro in pieces:
        window = micro.tokens.shape[1]
        assert window % 8 == 0 or window == trainer.config.model.length
        assert window > int(micro.lengths.max())
