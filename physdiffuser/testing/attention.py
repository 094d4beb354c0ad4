"""The contract of attention variants, as `physdiffuser.testing.check_attention` runs it.

What the networks rely on: shapes, finite gradients that reach every parameter, padded rows without any
influence, rows of a set in any order, the same module after saving and loading, and that each declared
capability is there while the others are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor, nn

from physdiffuser.errors import UsageError
from physdiffuser.models.attention import KeyValueCache, build_attention, require
from physdiffuser.plugin_system.contract import Calls, ContractError, ensure
from physdiffuser.specs import ATTENTION_CAPABILITIES, AttentionSpec

BATCH, ROWS, QUERIES, COLUMNS = 2, 9, 5, 3
TOLERANCE = 1e-4


def _same(first: Tensor, second: Tensor) -> bool:
    return torch.allclose(first, second, rtol=TOLERANCE, atol=TOLERANCE)


class _Checks:
    """One built module and a small batch for it."""

    def __init__(self, spec: AttentionSpec, width: int, heads: int) -> None:
        self.spec = spec
        self.width, self.heads = width, heads
        self.random = torch.Generator().manual_seed(0)
        self.module = self.build()
        self.rows = self.normal(BATCH, ROWS, width)
        self.coordinates = self.normal(BATCH, ROWS, COLUMNS + 1)

    def build(self) -> nn.Module:
        torch.manual_seed(0)
        module = build_attention(self.spec, self.width, self.heads, {})
        ensure(isinstance(module, nn.Module), f"build returns {type(module).__name__}, not a torch module")
        return module.eval()

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self.random)

    def __call__(
        self, query: Tensor, memory: Tensor | None = None, *, module: nn.Module | None = None, **options: Any
    ) -> tuple[Tensor, Tensor | None]:
        if "coordinates" in self.spec.supports and memory is None:
            options.setdefault("coordinates", self.coordinates[:, : query.shape[1]])
        answer = (module or self.module)(query, memory, **options)
        ensure(
            isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[0], Tensor),
            "the call must return a pair: the output, and the weights or None",
        )
        output, weights = answer
        ensure(
            output.shape == query.shape,
            f"the output has shape {tuple(output.shape)} for a query of shape {tuple(query.shape)}",
        )
        ensure(bool(torch.isfinite(output).all()), "the output is not finite")
        return output, weights

    def shapes(self) -> str:
        """Any number of rows, down to one; the same answer twice."""
        for rows in (1, 2, ROWS):
            self(self.rows[:, :rows])
        first, second = self(self.rows)[0], self(self.rows)[0]
        ensure(torch.equal(first, second), "two calls in evaluation mode differ; noise is for training only")
        return "shapes are kept, and evaluation is deterministic"

    def gradients(self) -> str:
        """Every parameter learns: one that does not breaks training on several processes."""
        for training in (False, True):
            module = self.build().train(training)
            rows = self.rows.clone().requires_grad_()
            output = self(rows, module=module)[0]
            (output * self.normal(*output.shape)).sum().backward()  # type: ignore[no-untyped-call]
            for name, parameter in module.named_parameters():
                ensure(parameter.grad is not None, f"no gradient reaches the parameter {name}")
                ensure(bool(torch.isfinite(parameter.grad).all()), f"the gradient of {name} is not finite")  # type: ignore[arg-type]
            ensure(rows.grad is not None and bool(rows.grad.any()), "no gradient reaches the input")
        return "finite gradients reach the input and every parameter"

    def order(self) -> str:
        """A set has no order: rows permuted, outputs permuted."""
        order = torch.randperm(ROWS, generator=self.random)
        options: dict[str, Any] = {}
        if "coordinates" in self.spec.supports:
            options["coordinates"] = self.coordinates[:, order]
        permuted = self(self.rows[:, order], **options)[0]
        ensure(
            _same(permuted, self(self.rows)[0][:, order]),
            "rows in another order give other outputs; positions must be off by default",
        )
        return "rows in another order give the same outputs in that order"

    def padding(self) -> str:
        """Padded rows count for nothing, whatever stands in them."""
        real = ROWS - 3
        mask = torch.zeros(BATCH, ROWS, dtype=torch.bool)
        mask[:, real:] = True
        alone = self(self.rows[:, :real])[0]
        filled = self.rows.clone()
        for value in (0.0, 100.0):
            filled[:, real:] = value
            padded = self(filled, padding_mask=mask)[0]
            ensure(_same(padded[:, :real], alone), "padded rows change the outputs of the others")
        return "padded rows have no influence"

    def cross(self) -> str:
        """Attention to another sequence."""
        query = self.normal(BATCH, QUERIES, self.width)
        output = self(query, self.rows)[0]
        ensure(
            not _same(output, self(query, self.rows.flip(0))[0]), "the output does not depend on the memory"
        )
        if "padding_mask" in self.spec.supports:
            mask = torch.zeros(BATCH, ROWS, dtype=torch.bool)
            mask[:, -2:] = True
            shorter = self(query, self.rows[:, :-2])[0]
            padded = self(query, self.rows, padding_mask=mask)[0]
            ensure(_same(padded, shorter), "padded rows of the memory change the output")
        return "it attends to another sequence"

    def causal(self) -> str:
        """A position sees none that comes after it."""
        before = self(self.rows, causal=True)[0]
        changed = self.rows.clone()
        changed[:, QUERIES:] = self.normal(BATCH, ROWS - QUERIES, self.width)
        after = self(changed, causal=True)[0]
        ensure(_same(before[:, :QUERIES], after[:, :QUERIES]), "a position sees those after it")
        return "no position sees those after it"

    def weights(self) -> str:
        """Weights are shares: each row sums to one, with nothing for padding."""
        plain, weights = self(self.rows, need_weights=True)
        ensure(weights is not None, "weights are declared, but None is returned for need_weights=True")
        assert weights is not None
        # The last axis is the rows looked at, or what stands for them, such as slices.
        shape = (BATCH, self.heads, ROWS)
        ensure(
            weights.ndim == 4 and tuple(weights.shape[:3]) == shape,
            f"weights have shape {tuple(weights.shape)}; expected {shape} and the shares",
        )
        ensure(_same(weights.sum(-1), torch.ones(shape)), "rows of the weights do not sum to 1")
        ensure(bool((weights >= 0).all()), "some weights are negative")
        ensure(_same(plain, self(self.rows)[0]), "asking for the weights changes the output")
        if "padding_mask" in self.spec.supports:
            mask = torch.zeros(BATCH, ROWS, dtype=torch.bool)
            mask[:, -2:] = True
            padded = self(self.rows, padding_mask=mask, need_weights=True)[1]
            assert padded is not None
            of_rows = padded.shape[-1] == ROWS
            ensure(not (of_rows and padded[:, :, :-2, -2:].any()), "padded rows have weight")
        return "rows of the weights sum to one"

    def cache(self) -> str:
        """One position at a time with a cache is the same as all at once."""
        whole = self(self.rows, causal=True)[0]
        cache = KeyValueCache()
        steps = [self(self.rows[:, place : place + 1], causal=True, cache=cache)[0] for place in range(ROWS)]
        ensure(_same(torch.cat(steps, dim=1), whole), "decoding with the cache differs from without")
        return "decoding with a cache is the same as without"

    def storage(self) -> str:
        """Weights go through safetensors and come back."""
        for parameter in self.module.parameters():
            parameter.data.add_(0.01 * self.normal(*parameter.shape))
        fresh = self.build()
        fresh.load_state_dict(
            load(save({name: value.clone() for name, value in self.module.state_dict().items()}))
        )
        ensure(
            torch.equal(self(self.rows)[0], self(self.rows, module=fresh)[0]),
            "reloaded, it answers differently",
        )
        return "saved and loaded, it answers the same"

    def low_precision(self) -> str:
        """Training runs in bfloat16."""
        with torch.autocast("cpu", dtype=torch.bfloat16):
            self(self.rows)
        return "it runs in bfloat16"

    def refusals(self) -> str:
        """What is not declared is refused with the reason."""
        for capability in sorted(ATTENTION_CAPABILITIES - self.spec.supports):
            try:
                require(self.spec, (capability,), "a network")
            except UsageError:
                continue
            raise ContractError(f"{capability} is not declared, and not refused either")
        return "what it does not declare is refused"


def check(spec: AttentionSpec, calls: Calls, *, width: int = 32, heads: int = 4) -> list[str]:
    """Run every check that applies; see `physdiffuser.testing.check_attention`."""
    checks = calls("build", _Checks, spec, width, heads)
    declared: dict[str, Callable[[], str]] = {
        "padding_mask": checks.padding,
        "cross": checks.cross,
        "causal": checks.causal,
        "weights": checks.weights,
        "cache": checks.cache,
    }
    run = [checks.shapes, checks.gradients, checks.order]
    run += [function for capability, function in declared.items() if capability in spec.supports]
    run += [checks.low_precision, checks.storage, checks.refusals]
    return [calls(f"the module, in the check {function.__name__!r},", function) for function in run]
