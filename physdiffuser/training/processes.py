"""Where training runs: the device, and the group of processes that `torchrun` started."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

import torch
from torch import Tensor

from physdiffuser.errors import UsageError


@dataclass
class Processes:
    """Where this process stands among those of a run."""

    rank: int = 0
    count: int = 1

    @classmethod
    def join(cls, device: torch.device) -> Processes:
        """Join the group that `torchrun` describes in the environment, if there is one."""
        count = int(os.environ.get("WORLD_SIZE", "1"))
        if count == 1:
            return cls()
        if not torch.distributed.is_initialized():
            # Its functions take the group that is there when it is imported as their default, and optimisers
            # import it: afterwards, and `leave` could not end the group's threads.
            import_module("torch.distributed.nn")
            torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
        return cls(torch.distributed.get_rank(), count)

    def average(self, parameters: Sequence[Tensor]) -> None:
        """Average the gradients over all processes, in one message."""
        if self.count == 1:
            return
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        torch.distributed.all_reduce(flat)
        flat /= self.count
        start = 0
        for parameter in parameters:
            size = parameter.numel()
            parameter.grad = flat[start : start + size].view_as(parameter)
            start += size

    def leave(self) -> None:
        """Leave the group; a process that ended with its threads still running would now and then abort."""
        if self.count > 1:
            torch.distributed.destroy_process_group()

    def any(self, flag: bool, device: torch.device) -> bool:
        """Whether it holds in some process; all of them get the same answer."""
        if self.count == 1:
            return flag
        votes = torch.tensor(float(flag), device=device)
        torch.distributed.all_reduce(votes)
        return bool(votes > 0)


def moved(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor on the device; a GPU goes on computing while it is copied."""
    if device.type == "cpu":
        return tensor
    return tensor.pin_memory().to(device, non_blocking=True)


def choose_device(name: str) -> torch.device:
    """`auto` is the GPU if there is one.

    Raises
    ------
    UsageError
        If a GPU is asked for and there is none.
    """
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise UsageError("device 'cuda' was asked for, but torch sees no GPU; use 'cpu' or 'auto'")
    if name == "cpu" or not available:
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
