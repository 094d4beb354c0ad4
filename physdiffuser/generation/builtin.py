"""The generators that ship with the package, registered as a plugin's would be.

Each lives in a package of its own with a function `build(**options) -> Generator`, imported when a run
builds it: the learned ones import torch.
"""

from __future__ import annotations

import importlib
from functools import partial
from typing import Any, cast

from physdiffuser.generation.protocol import Generator, GeneratorSpec
from physdiffuser.hookspecs import hookimpl

NAMES = ("enumeration", "sparse", "evolution", "diffusion", "autoregressive")


def _build(name: str, **options: Any) -> Generator:
    module = importlib.import_module(f"physdiffuser.generation.{name}")
    return cast(Generator, module.build(**options))


@hookimpl
def physdiffuser_generators() -> list[GeneratorSpec]:
    """The built-in generators."""
    return [GeneratorSpec(name, partial(_build, name)) for name in NAMES]
