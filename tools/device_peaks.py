"""What a device can do at most, measured, and how much of it a piece of work asks for."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from physdiffuser.device import HOST, Device

FloatArray = npt.NDArray[np.floating]


def best_of(repeats: int, work: Callable[[], object], device: Device = HOST) -> float:
    """Seconds of the quickest repetition: of the processor, or of the wall where another device works."""
    clock = time.perf_counter if device.name == "cuda" else time.process_time
    times = []
    for _ in range(repeats):
        start = clock()
        work()
        device.synchronise()
        times.append(clock() - start)
    return min(times)


def peaks(repeats: int, device: Device, kind: type[np.floating] = np.float32) -> tuple[float, float]:
    """Operations a second of a matrix product, and bytes a second that a copy reads and writes."""
    size, length = (8_192, 1 << 30) if device.name == "cuda" else (2_048, 1 << 26)
    left = device.put(np.random.default_rng(0).normal(size=(size, size)).astype(kind))
    long = device.put(np.zeros(length // 8))
    other = np.empty_like(long)
    # Once before it counts: libraries are loaded with the first call.
    _ = left @ left
    copy(long, other)
    device.synchronise()
    product = best_of(repeats, lambda: left @ left, device)
    return 2 * size**3 / product, 2 * length / best_of(repeats, lambda: copy(long, other), device)


def copy(one: FloatArray, other: FloatArray) -> None:
    """Copy an array of any device."""
    if isinstance(one, np.ndarray):
        np.copyto(other, one)
    else:
        other[...] = one


class Work:
    """Counts what torch's operations read, write and multiply while it is entered.

    Attributes
    ----------
    bytes
        Of all arrays that operations other than views take and give.
    flops
        Multiplications and additions of matrix products.
    """

    def __init__(self) -> None:
        from torch.utils.flop_counter import FlopCounterMode

        self.bytes, self.flops = 0, 0
        self._flops = FlopCounterMode(display=False)
        self._bytes = _traffic(self)

    def __enter__(self) -> Self:
        self._flops.__enter__()
        self._bytes.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bytes.__exit__(kind, error, trace)
        self._flops.__exit__(kind, error, trace)
        self.flops = self._flops.get_total_flops()


def _traffic(work: Work) -> Any:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    class Traffic(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, inputs: Any = (), options: Any = None) -> Any:
            found = function(*inputs, **(options or {}))
            if not function.is_view:
                every = [value for value in tree_leaves((inputs, found)) if isinstance(value, torch.Tensor)]
                work.bytes += sum(value.numel() * value.element_size() for value in every)
            return found

    return Traffic()
