"""Where dense work is done: by numpy on the processor, or by torch on a GPU when that is asked for.

Pair searches by matrix product and fits of many formulas at once are written in numpy alone. A `Device`
takes the arrays that this work begins with; on a GPU they come back as arrays (`device_arrays`) whose
numpy functions run there, and what is decided from them is taken back by `np.asarray`. So there is one
text of each algorithm. torch is imported only where it is asked for.

What equal means: single precision ranks and double precision decides, on every device. Matrix products add
up in another order elsewhere, so that what single precision does not tell apart (a share of about 1e-6 of
a target's variance) may rank differently; where the best of a tile are so close, all of them are computed
in double precision on the processor, and the best of these is taken, the first where they are equal there
too. Of sums the best three of each cost are sure to be the same: beyond, where a list of six ends between a
pair and its mirror image, either may be left out. Fits agree to what rounding moves them by. So with equal
steps the results are those of numpy, but for formulas that the rows of a table do not tell apart in single
precision.
"""

from __future__ import annotations

import weakref
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from physdiffuser.errors import UsageError

Scalar = TypeVar("Scalar", bound=np.generic)

# What `--device` takes. "auto" leaves dense work to numpy: start-up time is a promise, and tables are small.
# "cpu-torch" is for checks: what "cuda" does, on the processor.
DEVICES = ("auto", "cpu", "cuda", "cpu-torch")

# Rows of a matrix of residuals that are worked out at once on the processor: with tiles of 2048 columns they
# stay in the second-level cache.
HOST_ROWS = 128
# On a GPU, which is idle between small pieces of work; whole blocks of those on the processor.
GPU_ROWS = 16 * HOST_ROWS


class Device:
    """numpy on the processor, which leaves arrays as they are.

    Attributes
    ----------
    name
        As `--device` calls it.
    rows
        How many rows of a matrix of residuals are worked out at once.
    remote
        Whether its arrays are not numpy's own.
    """

    name = "cpu"
    rows = HOST_ROWS
    remote = False

    def put(self, array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """The array on the device: of the same shape and type, for numpy's functions."""
        return array

    def held(self, owner: Any, array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """An array that belongs to an object, brought to the device once as long as both live and match."""
        return array

    def synchronise(self) -> None:
        """Wait until everything asked for is done; for measurements."""

    def describe(self) -> str:
        """What it is, for measurements."""
        return "the processor"


class TorchDevice(Device):
    """torch on a device.

    Parameters
    ----------
    name
        "cuda" or "cpu-torch".

    Raises
    ------
    UsageError
        If a GPU is asked for and torch sees none.
    """

    remote = True

    def __init__(self, name: str) -> None:
        import torch

        if name == "cuda" and not torch.cuda.is_available():
            raise UsageError("device 'cuda' was asked for, but torch sees no GPU; use 'cpu' or 'auto'")
        self.name = name
        self.rows = GPU_ROWS
        self.torch_device = torch.device(torch_name(name))
        if self.torch_device.type == "cpu":
            # As numpy here: on a busy machine several threads wait for each other in every small product.
            torch.set_num_threads(1)
        self._held: weakref.WeakKeyDictionary[Any, tuple[tuple[int, ...], Any]] = weakref.WeakKeyDictionary()

    def put(self, array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """A `DeviceArray`, which numpy's functions and operators take."""
        from physdiffuser.device_arrays import DeviceArray

        return DeviceArray.of(array, self.torch_device)  # type: ignore[return-value]  # stands for an array

    def held(self, owner: Any, array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """A `DeviceArray`, made again where the array of its owner has another shape than before."""
        known = self._held.get(owner)
        if known is None or known[0] != array.shape:
            known = self._held[owner] = array.shape, self.put(array)
        found: npt.NDArray[Scalar] = known[1]
        return found

    def synchronise(self) -> None:
        """Wait for the GPU."""
        import torch

        if self.torch_device.type == "cuda":
            torch.cuda.synchronize(self.torch_device)

    def describe(self) -> str:
        """The name of the GPU."""
        import torch

        if self.torch_device.type == "cuda":
            return str(torch.cuda.get_device_name(self.torch_device))
        return super().describe()


HOST = Device()


def torch_name(name: str) -> str:
    """What torch calls a device of `DEVICES` other than "auto"."""
    return "cpu" if name == "cpu-torch" else name


def open_device(name: str) -> Device:
    """The device for dense work.

    Parameters
    ----------
    name
        One of `DEVICES`.

    Raises
    ------
    UsageError
        If there is no such device.
    """
    if name not in DEVICES:
        raise UsageError(f"device={name!r}: must be one of {', '.join(map(repr, DEVICES))}")
    return HOST if name in ("auto", "cpu") else TorchDevice(name)
