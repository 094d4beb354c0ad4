"""What is known of a plugin: the record it returned, where it came from, or why it cannot be used."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Spec = TypeVar("Spec")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")


BUILT_IN_PACKAGE = "physdiffuser"


@dataclass(frozen=True)
class Origin:
    """The installed package and the entry point that a plugin comes from.

    Attributes
    ----------
    package, version
        The distribution, its name in lower case with hyphens.
    entry_point
        Name and value, as in its metadata.
    """

    package: str
    version: str
    entry_point: str

    @property
    def built_in(self) -> bool:
        """Whether it ships with the program."""
        return self.package == BUILT_IN_PACKAGE

    def failed(self, reason: str, names: tuple[str, ...] = ()) -> Failure:
        """That this plugin, or some names of it, cannot be used."""
        return Failure(self, reason, names)

    def __str__(self) -> str:
        return f"{self.package} {self.version} ({self.entry_point})"


@dataclass(frozen=True)
class Registered(Generic[Spec]):
    """A record and the package it came from.

    Attributes
    ----------
    name, kind
        As the record names itself; "attention", "family", "generator" or "operator".
    origin
        The installed distribution and its entry point.
    spec
        The record, behind guards if it is a stranger's.
    original
        The record as the plugin returned it.
    """

    name: str
    kind: str
    origin: Origin
    spec: Spec
    original: Spec

    @property
    def package(self) -> str:
        """Name of the distribution it came from."""
        return self.origin.package


@dataclass(frozen=True)
class Failure:
    """A plugin, or a name of it, that cannot be used.

    Attributes
    ----------
    origin
        Where it came from.
    reason
        One sentence.
    names
        The names that are lost, where they are known: asking for one of them is an error.
    """

    origin: Origin
    reason: str
    names: tuple[str, ...] = ()

    @property
    def warning(self) -> str:
        """The message for the user."""
        return f"plugin package {self.origin}: {self.reason}"


class BadRecordError(Exception):
    """A record that is not what its hook asks for; `name` is what it called itself."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(reason)
        self.name = name


def describe(error: BaseException) -> str:
    """An exception in one line; one whose text cannot be had is described by its type alone."""
    try:
        text = " ".join(str(error).split())[:300]
    except Exception:
        text = "it has no readable text"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _check_common(spec: Any, expected: type[Any]) -> None:
    if not isinstance(spec, expected):
        raise TypeError(f"the hook must return {expected.__name__}, not {type(spec).__name__}")
    if not isinstance(spec.name, str) or not _NAME.fullmatch(spec.name):
        raise ValueError(
            f"the name {str(spec.name)[:40]!a} is no letter followed by at most 39 letters, digits, - or _"
        )


def _check_attention(spec: Any) -> None:
    from physdiffuser.specs import AttentionSpec

    _check_common(spec, AttentionSpec)
    _check_build(spec)


def _check_generator(spec: Any) -> None:
    from physdiffuser.specs import GeneratorSpec

    _check_common(spec, GeneratorSpec)
    _check_build(spec)


def _check_build(spec: Any) -> None:
    if not callable(spec.build):
        raise TypeError(f"{spec.name!r}: build must be callable, not {type(spec.build).__name__}")
    if not isinstance(spec.options, Mapping) or not all(isinstance(name, str) for name in spec.options):
        raise TypeError(f"{spec.name!r}: options must map names to default values")


def _check_operator(spec: Any) -> None:
    from physdiffuser.plugin_system.operator_checks import check_operator
    from physdiffuser.specs import OperatorSpec

    _check_common(spec, OperatorSpec)
    check_operator(spec)  # within the limits for loading, which end sooner


def _check_family(spec: Any) -> None:
    from physdiffuser.specs import FamilySpec

    # Its formula is read when all operators are known.
    _check_common(spec, FamilySpec)


CHECKS = {
    "attention": _check_attention,
    "generator": _check_generator,
    "operator": _check_operator,
    "family": _check_family,
}
# Where the hook is not called after the kind.
HOOKS = {"family": "physdiffuser_functions"}
