"""Arrays on another device that numpy's functions take: torch does what numpy is asked to do.

numpy hands a call over to what is given to it where that knows better (`__array_ufunc__`, NEP 13, and
`__array_function__`, NEP 18). So code written for numpy works on these arrays as it stands. What torch has
no counterpart for here, an operator of a plugin say, is done by numpy on the processor and brought back.

As in numpy, slices are views, and `np.asarray` gives a numpy array; that is the only way back, and waits for
the device. Unlike in numpy, a scalar takes the precision of the array beside it whatever its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from numpy.lib.mixins import NDArrayOperatorsMixin

_TYPES: dict[np.dtype[Any], torch.dtype] = {
    np.dtype(np.float64): torch.float64,
    np.dtype(np.float32): torch.float32,
    np.dtype(np.int64): torch.int64,
    np.dtype(np.int32): torch.int32,
    np.dtype(np.bool_): torch.bool,
}
_NAMES = {kind: name for name, kind in _TYPES.items()}


class DeviceArray(NDArrayOperatorsMixin):
    """A torch tensor for numpy's functions.

    Parameters
    ----------
    tensor
        Of double or single precision, of 64-bit integers or of truth values.
    """

    __slots__ = ("tensor",)
    __hash__ = None  # type: ignore[assignment]  # like an array's

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    @classmethod
    def of(cls, array: npt.NDArray[Any], device: torch.device) -> Self:
        """A copy of a numpy array on a device; an array that is on one already as it is."""
        held: object = array
        return (
            held if isinstance(held, cls) else cls(torch.tensor(np.ascontiguousarray(array), device=device))
        )

    # -- what numpy asks of an array --------------------------------------------------------------

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        array: npt.NDArray[Any] = self.tensor.cpu().numpy()
        return array if dtype is None and not copy else array.astype(dtype or array.dtype, copy=bool(copy))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        function = _ELEMENTWISE.get(ufunc.__name__)
        out = options.pop("out", None)
        if function is None or method != "__call__" or options:
            found = self._by_numpy(getattr(ufunc, method), inputs, options)
        elif out is None:
            return DeviceArray(function(*map(self._operand, inputs)))
        elif isinstance(out[0], DeviceArray):
            function(*map(self._operand, inputs), out=out[0].tensor)
            return out[0]
        else:
            found = DeviceArray(function(*map(self._operand, inputs)))
        if out is None:
            return found
        out[0][...] = found
        return out[0]

    def __array_function__(self, function: Callable[..., Any], _: Any, inputs: Any, options: Any) -> Any:
        known = _FUNCTIONS.get(function)
        if known is None:
            return self._by_numpy(function, inputs, options)
        return known(self, *inputs, **options)

    def _by_numpy(self, function: Callable[..., Any], inputs: Any, options: Any) -> Any:
        """What numpy makes of these arrays, brought to the device."""

        def back(value: Any) -> Any:
            if isinstance(value, tuple):
                return tuple(map(back, value))
            return self._put(value) if isinstance(value, np.ndarray | np.generic) else value

        return back(function(*_fetched(inputs), **_fetched(options)))

    def _put(self, value: Any) -> DeviceArray:
        return DeviceArray.of(np.asarray(value), self.tensor.device)

    def _operand(self, value: Any) -> torch.Tensor:
        """An argument of an elementwise function; a scalar where it is, since torch takes it from there."""
        if isinstance(value, DeviceArray):
            return value.tensor
        if np.ndim(value) == 0:
            # A number by itself has no say in the precision of what comes out.
            number = value.item() if isinstance(value, np.ndarray | np.generic) else value
            return torch.tensor(number, dtype=torch.float64 if isinstance(number, float) else None)
        return self._put(value).tensor

    def _place(self, key: Any) -> Any:
        if isinstance(key, tuple):
            return tuple(map(self._place, key))
        if isinstance(key, DeviceArray):
            return key.tensor
        return self._put(key).tensor if isinstance(key, np.ndarray) else key

    # -- an array's own methods -------------------------------------------------------------------

    def lowest(self, count: int) -> tuple[DeviceArray, DeviceArray]:
        """The least of each row of a matrix, which is overwritten.

        Parameters
        ----------
        count
            How many of each row; all where it has fewer.

        Returns
        -------
        values, places
            Shape (rows, count): ascending, the first place where several are equal. A row with nan begins
            with one.
        """
        # Each is a pass over what a reduction reads quickest; `topk` keeps no order among equals.
        values, places = [], []
        for _ in range(min(count, self.tensor.shape[1])):
            place = self.tensor.argmin(dim=1, keepdim=True)
            values.append(self.tensor.gather(1, place))
            places.append(place)
            self.tensor.scatter_(1, place, torch.inf)
        return DeviceArray(torch.cat(values, dim=1)), DeviceArray(torch.cat(places, dim=1))

    @property
    def shape(self) -> tuple[int, ...]:
        """As of numpy's arrays."""
        return tuple(self.tensor.shape)

    @property
    def ndim(self) -> int:
        """As of numpy's arrays."""
        return self.tensor.ndim

    @property
    def size(self) -> int:
        """As of numpy's arrays."""
        return self.tensor.numel()

    @property
    def dtype(self) -> np.dtype[Any]:
        """As of numpy's arrays."""
        return _NAMES[self.tensor.dtype]

    @property
    def T(self) -> DeviceArray:
        """As of numpy's arrays: a view."""
        return DeviceArray(self.tensor.permute(*reversed(range(self.ndim))))

    def __len__(self) -> int:
        return len(self.tensor)

    def __bool__(self) -> bool:
        return bool(self.tensor)

    def __float__(self) -> float:
        return float(self.tensor)

    def __int__(self) -> int:
        return int(self.tensor)

    def __getitem__(self, key: Any) -> DeviceArray:
        return DeviceArray(self.tensor[self._place(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        if np.ndim(value) == 0 and isinstance(value, np.ndarray | np.generic):
            value = value.item()
        self.tensor[self._place(key)] = value if isinstance(value, int | float) else self._operand(value)

    def astype(self, dtype: npt.DTypeLike) -> DeviceArray:
        """As of numpy's arrays."""
        return DeviceArray(self.tensor.to(_TYPES[np.dtype(dtype)]))

    def copy(self, order: str = "C") -> DeviceArray:
        """As of numpy's arrays, whatever the order: always row by row."""
        return DeviceArray(self.tensor.clone(memory_format=torch.contiguous_format))

    def transpose(self, *axes: int) -> DeviceArray:
        """As of numpy's arrays: a view."""
        return DeviceArray(self.tensor.permute(*axes)) if axes else self.T

    def sum(self, axis: int | None = None, keepdims: bool = False) -> DeviceArray:
        """As of numpy's arrays."""
        return DeviceArray(self.tensor.sum(dim=_axes(self, axis), keepdim=keepdims))

    def mean(self, axis: int | None = None, keepdims: bool = False) -> DeviceArray:
        """As of numpy's arrays."""
        return DeviceArray(self.tensor.mean(dim=_axes(self, axis), keepdim=keepdims))

    def std(self, axis: int | None = None, keepdims: bool = False) -> DeviceArray:
        """As of numpy's arrays."""
        return DeviceArray(self.tensor.std(dim=_axes(self, axis), correction=0, keepdim=keepdims))

    def all(self, axis: int | None = None) -> DeviceArray:
        """As of numpy's arrays."""
        return DeviceArray(self.tensor.all() if axis is None else self.tensor.all(dim=axis))

    def any(self, axis: int | None = None) -> DeviceArray:
        """As of numpy's arrays."""
        return DeviceArray(self.tensor.any() if axis is None else self.tensor.any(dim=axis))

    def min(self, axis: int | None = None, keepdims: bool = False) -> DeviceArray:
        """As of numpy's arrays: nan where there is one."""
        return DeviceArray(self.tensor.amin(dim=_axes(self, axis), keepdim=keepdims))

    def max(
        self, axis: int | None = None, keepdims: bool = False, initial: float | None = None
    ) -> DeviceArray:
        """As of numpy's arrays: nan where there is one."""
        if initial is not None and not self.size:
            shape = torch.empty(self.shape, device="meta").sum(dim=_axes(self, axis), keepdim=keepdims).shape
            return DeviceArray(torch.full(shape, initial, dtype=self.tensor.dtype, device=self.tensor.device))
        most = self.tensor.amax(dim=_axes(self, axis), keepdim=keepdims)
        return DeviceArray(most if initial is None else most.clamp(min=initial))

    def argmin(self, axis: int) -> DeviceArray:
        """As of numpy's arrays: the first where several are least, or of those that are nan."""
        return DeviceArray(self.tensor.argmin(dim=axis))


def _axes(array: DeviceArray, axis: int | None) -> tuple[int, ...]:
    return tuple(range(array.ndim)) if axis is None else (axis,)


def _fetched(value: Any) -> Any:
    """Arguments with numpy's arrays in place of these."""
    if isinstance(value, DeviceArray):
        return np.asarray(value)
    if isinstance(value, tuple | list):
        return type(value)(map(_fetched, value))
    if isinstance(value, dict):
        return {key: _fetched(part) for key, part in value.items()}
    return value


def _matmul(left: torch.Tensor, right: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """A product of the full precision: what ranks next to rounding must not be rounded to ten bits."""
    if left.device.type == "cpu" or left.dtype != torch.float32:
        return torch.matmul(left, right, out=out)
    setting = torch.backends.cuda.matmul
    before = setting.fp32_precision
    setting.fp32_precision = "ieee"
    try:
        return torch.matmul(left, right, out=out)
    finally:
        setting.fp32_precision = before


_ELEMENTWISE: dict[str, Callable[..., torch.Tensor]] = {
    function.__name__: function
    for function in (
        *(torch.add, torch.subtract, torch.multiply, torch.divide, torch.negative, torch.reciprocal),
        *(torch.sqrt, torch.square, torch.exp, torch.expm1, torch.log, torch.log1p),
        *(torch.sin, torch.cos, torch.tan, torch.arcsin, torch.arccos, torch.arctan),
        *(torch.sinh, torch.cosh, torch.tanh, torch.absolute, torch.sign, torch.maximum, torch.minimum),
        *(torch.isfinite, torch.isnan, torch.less, torch.less_equal, torch.greater, torch.greater_equal),
        *(torch.not_equal, torch.bitwise_and, torch.bitwise_or, torch.logical_and, torch.logical_or),
        torch.logical_not,
    )
}
_ELEMENTWISE |= {
    "equal": torch.eq,
    "power": torch.pow,
    "invert": torch.bitwise_not,
    "matmul": _matmul,
}


def _where(home: DeviceArray, condition: Any, left: Any, right: Any) -> DeviceArray:
    return DeviceArray(home._operand(left).where(home._operand(condition), home._operand(right)))


def _einsum(home: DeviceArray, subscripts: str, *arrays: Any) -> DeviceArray:
    return DeviceArray(torch.einsum(subscripts, *map(home._operand, arrays)))


def _broadcast_to(home: DeviceArray, array: Any, shape: tuple[int, ...]) -> DeviceArray:
    return DeviceArray(home._operand(array).expand(shape))


def _empty_like(home: DeviceArray, array: DeviceArray) -> DeviceArray:
    return DeviceArray(torch.empty_like(array.tensor))


def _ones_like(home: DeviceArray, array: DeviceArray) -> DeviceArray:
    return DeviceArray(torch.ones_like(array.tensor))


def _empty(home: DeviceArray, shape: tuple[int, ...]) -> DeviceArray:
    return DeviceArray(torch.empty(shape, dtype=torch.float64, device=home.tensor.device))


def _zeros(home: DeviceArray, shape: tuple[int, ...]) -> DeviceArray:
    return DeviceArray(torch.zeros(shape, dtype=torch.float64, device=home.tensor.device))


def _asarray(home: DeviceArray, value: object) -> DeviceArray:
    return value if isinstance(value, DeviceArray) else home._put(value)


def _copy(home: DeviceArray, array: DeviceArray, order: str = "K") -> DeviceArray:
    return array.copy()


def _concatenate(home: DeviceArray, arrays: Any, axis: int = 0) -> DeviceArray:
    return DeviceArray(torch.cat([home._operand(array) for array in arrays], dim=axis))


def _stack(home: DeviceArray, arrays: Any, axis: int = 0) -> DeviceArray:
    return DeviceArray(torch.stack([home._operand(array) for array in arrays], dim=axis))


def _ptp(home: DeviceArray, array: DeviceArray, axis: int | None = None) -> DeviceArray:
    return DeviceArray(array.max(axis).tensor - array.min(axis).tensor)


def _median(home: DeviceArray, array: DeviceArray, axis: int) -> DeviceArray:
    ranked = array.tensor.movedim(axis, -1).sort(dim=-1).values
    count = ranked.shape[-1]
    middle = ranked[..., (count - 1) // 2 : count // 2 + 1].mean(dim=-1)
    # What is not a number is ranked last.
    return DeviceArray(torch.where(ranked[..., -1].isnan(), ranked[..., -1], middle))


def _norm(home: DeviceArray, array: DeviceArray, axis: int, keepdims: bool = False) -> DeviceArray:
    return DeviceArray(torch.linalg.vector_norm(array.tensor, dim=axis, keepdim=keepdims))


def _ndim(home: DeviceArray, array: DeviceArray) -> int:
    return array.ndim


def _shape(home: DeviceArray, array: DeviceArray) -> tuple[int, ...]:
    return array.shape


_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.where: _where,
    np.einsum: _einsum,
    np.broadcast_to: _broadcast_to,
    np.empty_like: _empty_like,
    np.ones_like: _ones_like,
    np.empty: _empty,
    np.zeros: _zeros,
    np.asarray: _asarray,
    np.copy: _copy,
    np.concatenate: _concatenate,
    np.stack: _stack,
    np.ptp: _ptp,
    np.median: _median,
    np.linalg.norm: _norm,
    np.ndim: _ndim,
    np.shape: _shape,
}
