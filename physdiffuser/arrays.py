"""Shapes of arrays in annotations, `Float64[ndarray, "rows columns"]`, checked by the tests and nowhere else.

A module imports the names of jaxtyping under `if TYPE_CHECKING or CHECK_ARRAYS`. A run of the program does
not import it, which would add 0.06 s to the start. Functions marked with `checked` are checked by beartype in
processes that have the environment variable PHYSDIFFUSER_CHECK_ARRAYS.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

Function = TypeVar("Function", bound=Callable[..., object])

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
