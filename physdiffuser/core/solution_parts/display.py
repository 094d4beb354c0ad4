"""Results that display themselves: as text, in a notebook, and as LaTeX."""

from __future__ import annotations

import importlib
from dataclasses import MISSING, fields
from typing import Any

# Fields that earlier versions had under another name.
_RENAMED = {
    "held_out": "test",
    "held_out_rmse": "test_rmse",
    "held_out_rows": "test_rows",
    "more_digits": "extra_digits",
}


class Restorable:
    """A frozen record whose pickles can be read by later versions."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickle; fields that an earlier version did not have get their defaults, and renamed ones
        their present names.
        """
        state = {_RENAMED.get(name, name): value for name, value in state.items()}
        for field in fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            if field.name not in state and field.default is not MISSING:
                state[field.name] = field.default
            elif field.name not in state and field.default_factory is not MISSING:
                state[field.name] = field.default_factory()
        self.__dict__.update(state)


class Displayed(Restorable):
    """What `print` and a notebook need of a result, for the frozen records of `core.solution`.

    The text, the page and the LaTeX are made by `physdiffuser.report.text.display`, which is loaded when one
    of them is asked for: the report is built on these records, so they cannot import it.
    """

    def __str__(self) -> str:
        return str(self._display().as_text(self))

    def __repr__(self) -> str:
        return str(self._display().as_short_text(self))

    def _repr_html_(self) -> str | None:
        html: str | None = self._display().as_html(self)
        return html

    def _repr_latex_(self) -> str | None:
        latex: str | None = self._display().as_latex(self)
        return latex

    @staticmethod
    def _display() -> Any:
        return importlib.import_module("physdiffuser.report.text.display")
