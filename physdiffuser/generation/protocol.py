"""The former place of `physdiffuser.core.generator`, for plugins and pickles of version 1."""

from physdiffuser.core.generator import Generator, GeneratorSpec

__all__ = ["Generator", "GeneratorSpec"]
