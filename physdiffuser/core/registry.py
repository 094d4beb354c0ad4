"""Parts of one kind by name, each registered where it is defined."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

Part = TypeVar("Part")


class Registry(Generic[Part]):
    """Parts of one kind, in the order in which they were registered.

    Parameters
    ----------
    what
        What a part is called in messages.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._parts: dict[str, Part] = {}

    def add(self, name: str, part: Part) -> None:
        """Register a part.

        Raises
        ------
        ValueError
            If another part has the name.
        """
        if name in self._parts:
            raise ValueError(f"there is already an {self._what} named '{name}'")
        self._parts[name] = part

    def __getitem__(self, name: str) -> Part:
        if name not in self._parts:
            raise ValueError(f"no {self._what} is named '{name}'; there are {', '.join(sorted(self._parts))}")
        return self._parts[name]

    def parts(self) -> dict[str, Part]:
        """All parts by name, in their order."""
        return dict(self._parts)

    @contextmanager
    def without(self, *names: str) -> Iterator[None]:
        """Take parts away for a while, to measure what they are worth; an unknown name is a ValueError."""
        all_parts = self._parts
        for name in names:
            self[name]
        self._parts = {name: part for name, part in all_parts.items() if name not in names}
        try:
            yield
        finally:
            self._parts = all_parts
