"""Sine and cosine in double precision at the speed of the vectorised tangent.

numpy has vector code for the double precision tangent (AVX-512) but none for sine and cosine, which
then cost about eight times as much. With `t = tan(x/2)`,

    sin(x) = 2*t/(1 + t**2)        cos(x) = (1 - t**2)/(1 + t**2)

Halving is exact (but for the subnormal numbers), so the tangent's own argument reduction is all there is to
trust. Measured against libm on 200,000 uniform points in each of [-10**k, 10**k], k from -300 to 200: sine to
3.9e-16 relative, cosine to 2.3e-16 absolute (like any cosine of a rounded argument, it is not exact in the
relative sense next to its zeros). Zeros keep their sign, infinities give nan.

Where numpy has no vectorised tangent, its own sine and cosine are used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from physdiffuser.arrays import FloatArray

_HALF = np.array(0.5)
_ONE = np.array(1.0)


def _has_vector_tangent() -> bool:
    try:
        from numpy.lib.introspect import opt_func_info
    except ImportError:  # numpy < 2.1 cannot tell
        return False
    loops = opt_func_info(func_name="^tan$", signature="float64").get("tan", {})
    # "X86_V4" (numpy >= 2.4) and "AVX512_SKX" (before) name the same instructions.
    return any(loop["current"].startswith(("X86_V4", "AVX512")) for loop in loops.values())


VECTOR_TANGENT = _has_vector_tangent()


def _plain(argument: Any, out: FloatArray | None) -> bool:
    kind = argument.dtype if isinstance(argument, np.ndarray) else None
    return not VECTOR_TANGENT or kind != np.float64 or (out is not None and out.dtype != np.float64)


def sin(argument: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """Sine of an array; `out` as in numpy."""
    if _plain(argument, out) or argument.ndim == 0:
        return np.sin(argument, out=out)
    tangent: FloatArray = np.multiply(argument, _HALF, out=out)
    np.tan(tangent, tangent)
    below = tangent * tangent
    below += _ONE
    tangent += tangent
    tangent /= below
    return tangent


def cos(argument: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """Cosine of an array; `out` as in numpy."""
    if _plain(argument, out) or argument.ndim == 0:
        return np.cos(argument, out=out)
    square: FloatArray = np.multiply(argument, _HALF, out=out)
    np.tan(square, square)
    square *= square
    below = square + _ONE
    np.subtract(_ONE, square, square)
    square /= below
    return square
