"""Types of arrays in annotations, and their shapes, which the tests check.

`FloatArray` and its like say what an array holds. Public functions of `models`, `fitting` and `library` also
say its shape, `Float64[ndarray, "rows columns"]`. A module imports the names of jaxtyping under
`if TYPE_CHECKING or CHECK_ARRAYS`: a run of the program does not import it, which would add 0.06 s to the
start. Functions marked with `checked` are checked by beartype in processes that have the environment variable
PHYSDIFFUSER_CHECK_ARRAYS (arrays of another device, which stand in for those of numpy, would not pass).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
IndexArray: TypeAlias = npt.NDArray[np.intp]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

Function = TypeVar("Function", bound=Callable[..., object])


def spread_places(count: int, most: int) -> IndexArray:
    """At most `most` of the positions 0 to `count - 1`, evenly spaced: tables may be sorted."""
    return np.linspace(0, count - 1, min(count, most)).astype(np.intp)


CHECK_ARRAYS = bool(os.environ.get("PHYSDIFFUSER_CHECK_ARRAYS"))


def checked(function: Function) -> Function:
    """Check the shapes and types of arguments and results in the tests.

    Parameters
    ----------
    function
        All names in its annotations must be known at run time when `CHECK_ARRAYS` is true.

    References
    ----------
    jaxtyping, https://docs.kidger.site/jaxtyping/
    """
    if not CHECK_ARRAYS:
        return function
    from beartype import beartype
    from jaxtyping import jaxtyped

    made: Function = jaxtyped(typechecker=beartype)(function)
    return made
