"""Typed look-ups in JSON from outside, with errors that name the place."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from physdiffuser.errors import DataError, UsageError
from physdiffuser.expressions import Expression, ExpressionSyntaxError
from physdiffuser.io.display import visible

Choice = TypeVar("Choice", bound=str)
Parse = Callable[..., Expression]


class Reader:
    """One JSON object and where it stands in its file."""

    def __init__(self, content: object, source: str, path: str = "") -> None:
        self.source = source
        self.path = path
        if not isinstance(content, dict):
            raise self._error("", "an object")
        self.content: dict[str, Any] = content

    def _error(self, key: str, expected: str) -> DataError:
        place = ".".join(part for part in (self.path, key) if part) or "the document"
        return DataError(
            f"{self.source}: {place} should be {expected}. "
            "The file is no result of 'physdiffuser solve', or was changed by hand; run solve again."
        )

    def _get(self, key: str) -> Any:
        return self.content.get(key)

    def schema(self, expected: int) -> None:
        """Check the version of the document.

        Raises
        ------
        UsageError
            If it has another version than `expected`.
        """
        found = self._get("schema")
        if isinstance(found, bool) or not isinstance(found, int):
            raise self._error("schema", "a whole number")
        if found != expected:
            raise UsageError(
                f"{self.source}: written with schema {found}; this version reads schema {expected}. "
                "Run solve again, or use the version that wrote it."
            )

    def text(self, key: str) -> str:
        """A string."""
        value = self._get(key)
        if not isinstance(value, str):
            raise self._error(key, "a string")
        return value

    def optional_text(self, key: str) -> str | None:
        """A string, or None for null and absent."""
        return None if self._get(key) is None else self.text(key)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings; empty when absent."""
        value = self.content.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._error(key, "a list of strings")
        return tuple(value)

    def texts_by_name(self, key: str) -> dict[str, str]:
        """An object of strings; empty when absent."""
        value = self.content.get(key, {})
        if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
            raise self._error(key, "an object of strings")
        return value

    def one_of(self, key: str, choices: tuple[Choice, ...]) -> Choice:
        """One of the given strings."""
        value = self.text(key)
        for choice in choices:
            if choice == value:
                return choice
        raise self._error(key, "one of " + ", ".join(choices))

    def flag(self, key: str) -> bool:
        """True or false."""
        value = self._get(key)
        if not isinstance(value, bool):
            raise self._error(key, "true or false")
        return value

    def integer(self, key: str) -> int:
        """A whole number."""
        value = self._get(key)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._error(key, "a whole number")
        return value

    def optional_integer(self, key: str) -> int | None:
        """A whole number, or None for null and absent."""
        return None if self._get(key) is None else self.integer(key)

    def number(self, key: str) -> float:
        """A number; nan for null, which stands for one that was not finite."""
        value = self.optional_number(key)
        return float("nan") if value is None else value

    def optional_number(self, key: str) -> float | None:
        """A number, or None for null and absent."""
        return self._number(key, self._get(key))

    def _number(self, key: str, value: object) -> float | None:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._error(key, "a number or null")
        try:
            return float(value)
        except OverflowError:
            raise self._error(key, "a number that fits double precision") from None

    def numbers(self, key: str) -> dict[str, float | None]:
        """An object of numbers; empty when absent."""
        value = self.content.get(key, {})
        if not isinstance(value, dict):
            raise self._error(key, "an object of numbers")
        return {name: self._number(f"{key}.{name}", item) for name, item in value.items()}

    def integers(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers."""
        value = self._get(key)
        if not isinstance(value, list) or any(type(item) is not int for item in value):
            raise self._error(key, "a list of whole numbers")
        return tuple(value)

    def optional_row(self, key: str) -> tuple[float, ...] | None:
        """A list of numbers, or None for null and absent."""
        value = self._get(key)
        if value is None:
            return None
        if not isinstance(value, list):
            raise self._error(key, "a list of numbers or null")
        numbers = [self._number(key, item) for item in value]
        return tuple(math.nan if number is None else number for number in numbers)

    def keys(self) -> list[str]:
        """The keys of the object."""
        return list(self.content)

    def optional_matrix(self, key: str) -> tuple[tuple[float, ...], ...] | None:
        """A square matrix of numbers; None for null, absent, or when an entry is null."""
        value = self._get(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(
            isinstance(row, list) and len(row) == len(value) for row in value
        ):
            raise self._error(key, "a square matrix or null")
        matrix = [[self._number(key, item) for item in row] for row in value]
        rows = tuple(tuple(item for item in row if item is not None) for row in matrix)
        return rows if all(len(row) == len(rows) for row in rows) else None

    def rows(self, key: str) -> list[Reader]:
        """A list of objects; empty when absent."""
        value = self.content.get(key, [])
        if not isinstance(value, list):
            raise self._error(key, "a list")
        return [
            Reader(item, self.source, f"{self.path}.{key}[{index}]".lstrip("."))
            for index, item in enumerate(value)
        ]

    def child(self, key: str) -> Reader:
        """An object."""
        return Reader(self._get(key), self.source, f"{self.path}.{key}".lstrip("."))

    def optional(self, key: str) -> Reader | None:
        """An object, or None for null and absent."""
        return None if self._get(key) is None else self.child(key)

    def formula(
        self, key: str, parse: Parse, names: tuple[str, ...], known: Mapping[str, float]
    ) -> Expression:
        """A formula in the given names."""
        try:
            return parse(self.text(key), names, known)
        except ExpressionSyntaxError as error:
            place = f"{self.path}.{key}".lstrip(".")
            raise DataError(f"{self.source}, {visible(place)}: {error}") from error
