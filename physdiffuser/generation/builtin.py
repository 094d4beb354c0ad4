"""The generators that ship with the package, registered as a plugin's would be.

Each lives in a package of its own with a function `build(**options) -> Generator`, imported when a run
builds it: the learned ones import torch.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, cast

from physdiffuser.core.generator import Generator, GeneratorSpec
from physdiffuser.hookspecs import hookimpl


def _build(name: str, **options: Any) -> Generator:
    module = importlib.import_module(f"physdiffuser.generation.{name}")
    return cast(Generator, module.build(**options))


_DENSE: Mapping[str, Any] = {"device": "auto"}
_LEARNED: Mapping[str, Any] = {"attention": None, "device": "auto"}


def _spec(name: str, options: Mapping[str, Any] = MappingProxyType({}), **declared: Any) -> GeneratorSpec:
    return GeneratorSpec(name, partial(_build, name), options, **declared)


# In the order of their first turns: what is cheap and decisive on exact data comes first. Enumeration and
# sparse regression keep a share: a systematic search pays off all at once, near its end, while a stochastic
# one seems to pay off all the time. The autoregressive generator is deferred because torch takes seconds to
# start, in which the others find most laws.
SPECS = (
    _spec("enumeration", _DENSE, share=0.45, opening=(7, 23)),
    _spec("sparse", share=0.2, opening=(8,), ahead=8),
    _spec("evolution", ahead=5),
    _spec("neighbours", _DENSE, role="refiner"),
    _spec("diffusion", _LEARNED, default=False),
    _spec("autoregressive", _LEARNED, role="deferred", ahead=30),
    _spec("infilling", _LEARNED, role="refiner", after_deferred=True, default=False),
)
DEFAULT_GENERATORS = tuple(spec.name for spec in SPECS if spec.default)


@hookimpl
def physdiffuser_generators() -> list[GeneratorSpec]:
    """The built-in generators."""
    return list(SPECS)
