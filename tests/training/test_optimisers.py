"""Muon: steps along an orthogonalised momentum, for matrices between hidden vectors only."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.linalg import polar
from torch import nn

from physdiffuser.config import OptimiserConfig, parse_training_config
from physdiffuser.models.network import LawModel
from physdiffuser.models.tokens.vocabulary import Vocabulary
from physdiffuser.training.optimisers import Muon, build_optimisers, orthogonalised


def _matrix(rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(rows, columns))).float()


@pytest.mark.parametrize("shape", [(16, 16), (32, 8), (8, 32)])
def test_orthogonalised_is_near_the_polar_factor(shape: tuple[int, int]) -> None:
    matrix = _matrix(*shape)
    found = orthogonalised(matrix[None])[0]
    singular = torch.linalg.svdvals(found)
    assert singular.min() > 0.6 and singular.max() < 1.3
    # Same singular vectors as the polar factor: what differs are singular values near 1.
    unitary = torch.from_numpy(polar(matrix.double().numpy())[0]).float()
    between = unitary.T @ found if shape[0] >= shape[1] else found @ unitary.T
    assert torch.allclose(between, between.T, atol=1e-4)
    assert torch.linalg.eigvalsh(between).min() > 0.6


def test_the_first_step_moves_along_the_gradient_orthogonalised() -> None:
    parameter = nn.Parameter(_matrix(12, 6))
    before, gradient = parameter.detach().clone(), _matrix(12, 6, 1)
    optimiser = Muon([parameter], rate=0.1, momentum=0.9, decay=0.5)
    parameter.grad = gradient.clone()
    optimiser.step()
    moved = before * (1 - 0.1 * 0.5) - parameter.detach()
    expected = orthogonalised(gradient[None])[0] * 0.1 * 0.2 * 12**0.5
    assert torch.allclose(moved, expected, atol=1e-6)


def test_matrices_of_one_shape_are_stepped_as_each_alone_would_be() -> None:
    together = [nn.Parameter(_matrix(8, 8, seed)) for seed in range(3)]
    alone = [nn.Parameter(p.detach().clone()) for p in together]
    joint = Muon(together, 0.1, 0.9, 0.01)
    single = [Muon([p], 0.1, 0.9, 0.01) for p in alone]
    for round_ in range(3):
        for index, (one, other) in enumerate(zip(together, alone, strict=True)):
            one.grad = _matrix(8, 8, 10 * round_ + index)
            other.grad = one.grad.clone()
        joint.step()
        for optimiser in single:
            optimiser.step()
    for one, other in zip(together, alone, strict=True):
        assert torch.allclose(one, other, atol=1e-5)


def test_a_gradient_that_is_not_finite_changes_nothing() -> None:
    parameter = nn.Parameter(_matrix(8, 8))
    optimiser = Muon([parameter], 0.1, 0.9, 0.01)
    parameter.grad = _matrix(8, 8, 1)
    optimiser.found_inf = torch.tensor(0.0)
    optimiser.step()
    weights, momentum = parameter.detach().clone(), optimiser.state[parameter]["momentum"].clone()
    parameter.grad = torch.full((8, 8), float("nan"))
    optimiser.found_inf = torch.tensor(1.0)
    optimiser.step()
    assert torch.equal(parameter.detach(), weights)
    assert torch.equal(optimiser.state[parameter]["momentum"], momentum)


def test_muon_takes_the_matrices_between_vectors_and_adamw_the_rest() -> None:
    config = parse_training_config({"out": "a", "steps": 1, "model": {"width": 16, "heads": 2}}, "test").model
    named = dict(LawModel(config, Vocabulary()).named_parameters())
    adamw, muon = build_optimisers(named, OptimiserConfig(kind="muon"))
    taken = {id(p) for group in muon.param_groups for p in group["params"]}
    others = {id(p) for group in adamw.param_groups for p in group["params"]}
    assert not taken & others and len(taken | others) == len(named)
    inside = {name for name, p in named.items() if id(p) in taken}
    assert "decoder.blocks.0.own.query.weight" in inside and "encoder.row_inner.weight" in inside
    assert not inside & {"decoder.tokens.weight", "decoder.head.weight", "encoder.rows.weight"}
    assert all(named[name].dim() == 2 for name in inside)
    assert len(build_optimisers(named, OptimiserConfig())) == 1
