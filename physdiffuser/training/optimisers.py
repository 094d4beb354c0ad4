"""AdamW, and Muon for the weights between hidden vectors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from physdiffuser.config import OptimiserConfig

# The quintic of Muon (Jordan et al., 2024): steep at zero, so that five rounds bring every singular
# value to between 0.7 and 1.2.
_QUINTIC = (3.4445, -4.7750, 2.0315)
_ROUNDS = 5
# With this factor a step is as large, root mean square, as one of AdamW (Liu et al., 2025, equation 4).
_SIZE = 0.2
# Layers that lead from tokens or features to vectors and back are no maps between vectors.
_OUTER = (
    "tokens",
    "head",
    "rows",
    "flags",
    "values",
    "column_tokens.inner",
    "table_token.inner",
    "curves.inner",
)
# What a checkpoint keeps of an optimiser's state, and the name it has there.
KEPT = {"step": "step", "exp_avg": "first", "exp_avg_sq": "second", "momentum": "momentum"}


def orthogonalised(matrices: Tensor) -> Tensor:
    """The nearest matrices with orthonormal rows or columns, about: singular values within 0.3 of 1.

    Parameters
    ----------
    matrices
        (batch, m, n), float.
    """
    a, b, c = _QUINTIC
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.transpose(1, 2) if tall else matrices
    x = x / x.flatten(1).norm(dim=1).clamp_min(1e-12)[:, None, None]
    for _ in range(_ROUNDS):
        gram = x @ x.transpose(1, 2)
        x = a * x + torch.baddbmm(gram, gram, gram, beta=b, alpha=c) @ x
    result: Tensor = x.transpose(1, 2) if tall else x
    return result


class Muon(torch.optim.Optimizer):
    """Momentum whose every matrix is orthogonalised before it is added (Jordan et al., 2024).

    That of torch works in bfloat16, which is slow on a processor without such products, and takes one
    matrix after the other; here it is single precision, and matrices of one shape are taken together.
    `found_inf` is what it is to the fused AdamW: if it is not zero, a step changes nothing.

    Parameters
    ----------
    parameters
        Matrices.
    rate, momentum, decay
        Step size, share of the momentum that stays, weight decay (times the rate).
    """

    found_inf: Tensor
    grad_scale: Tensor

    def __init__(self, parameters: Iterable[nn.Parameter], rate: float, momentum: float, decay: float):
        super().__init__(list(parameters), {"lr": rate, "momentum": momentum, "weight_decay": decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """One step along the orthogonalised momentum."""
        good = 1.0 - self.found_inf if hasattr(self, "found_inf") else torch.tensor(1.0)
        for group in self.param_groups:
            shapes: dict[torch.Size, list[nn.Parameter]] = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    shapes[parameter.shape].append(parameter)
            for shape, parameters in shapes.items():
                self._together(parameters, shape, group, good)

    def _together(
        self, parameters: list[nn.Parameter], shape: torch.Size, group: dict[str, Any], good: Tensor
    ) -> None:
        share = group["momentum"]
        gradients = torch.stack([p.grad for p in parameters if p.grad is not None])
        states = [self.state[p] for p in parameters]
        for state in states:
            if "momentum" not in state:
                state["momentum"] = torch.zeros_like(gradients[0])
        before = torch.stack([state["momentum"] for state in states])
        # A gradient that is not finite must not get into the momentum: inf * 0 would be nan.
        momentum = torch.where(good > 0.0, share * before + (1.0 - share) * gradients, before)
        ahead = torch.where(good > 0.0, share * momentum + (1.0 - share) * gradients, before)
        size = _SIZE * max(shape) ** 0.5 * group["lr"] * good
        moves = orthogonalised(ahead) * size
        keep = 1.0 - group["lr"] * group["weight_decay"] * good
        for parameter, state, now, move in zip(parameters, states, momentum, moves, strict=True):
            state["momentum"] = now.clone()
            parameter.mul_(keep).sub_(move)


def _hidden(name: str, parameter: nn.Parameter) -> bool:
    """Whether a parameter is a matrix from hidden vectors to hidden vectors."""
    owner = name.removesuffix(".weight")
    return parameter.dim() == 2 and owner != name and not owner.endswith(_OUTER)


def build_optimisers(
    parameters: dict[str, nn.Parameter], config: OptimiserConfig
) -> list[torch.optim.Optimizer]:
    """AdamW for all parameters, or for those that Muon does not take.

    Parameters
    ----------
    parameters
        Those that learn, by name.
    config
        Which optimiser, its rate and weight decay.
    """
    matrices = {name for name, p in parameters.items() if config.kind == "muon" and _hidden(name, p)}
    rest = {name: p for name, p in parameters.items() if name not in matrices}
    groups = [
        {"params": [p for p in rest.values() if p.dim() > 1], "weight_decay": config.decay},
        {"params": [p for p in rest.values() if p.dim() <= 1], "weight_decay": 0.0},
    ]
    built: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(groups, lr=config.rate, betas=config.betas, fused=True)
    ]
    if matrices:
        chosen = [p for name, p in parameters.items() if name in matrices]
        built.append(Muon(chosen, config.rate, config.momentum, config.decay))
    return built
