"""The generators that ship with the package, registered as a plugin's would be.

Each lives in a package of its own with a function `build(**options) -> Generator`, imported when a run
builds it: the learned ones import torch.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import partial
from typing import Any, cast

from physdiffuser.core.generator import Generator, GeneratorSpec
from physdiffuser.hookspecs import hookimpl

NAMES = ("enumeration", "sparse", "evolution", "neighbours", "diffusion", "autoregressive")
# Options that `solve` passes on to the generators that take them.
_LEARNED: Mapping[str, Any] = {"attention": None, "device": "auto"}
_DENSE: Mapping[str, Any] = {"device": "auto"}
_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "enumeration": _DENSE,
    "neighbours": _DENSE,
    "diffusion": _LEARNED,
    "autoregressive": _LEARNED,
}


def _build(name: str, **options: Any) -> Generator:
    module = importlib.import_module(f"physdiffuser.generation.{name}")
    return cast(Generator, module.build(**options))


@hookimpl
def physdiffuser_generators() -> list[GeneratorSpec]:
    """The built-in generators."""
    return [GeneratorSpec(name, partial(_build, name), _OPTIONS.get(name, {})) for name in NAMES]
