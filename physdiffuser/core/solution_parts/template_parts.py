"""What was found for the unknown functions of a template."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class TemplateParts:
    """The unknown functions of a template in the chosen law.

    Attributes
    ----------
    text
        The template.
    functions
        The formula of each function, in its arguments.
    arguments
        Names of the arguments of each function.
    constants
        Values of the free constants of the template that all rows share.
    group_constants
        The others: of each the name of the constant of the groups, `p1`, in the formulas.
    statements
        The best forms that were found for each function, `f = 2*t + x`: what a later run starts from.
    """

    text: str
    functions: Mapping[str, str]
    arguments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    constants: Mapping[str, float] = field(default_factory=dict)
    group_constants: Mapping[str, str] = field(default_factory=dict)
    statements: tuple[str, ...] = ()

    def headings(self) -> dict[str, str]:
        """The functions for people, numbers to six digits: `{"f(t, x)": "2*t + 1.19456*x"}`."""
        return {
            f"{name}({', '.join(self.arguments.get(name, ()))})": _DIGITS.sub(_shorter, text)
            for name, text in self.functions.items()
        }


_DIGITS = re.compile(r"(?<![\w.])\d+\.\d+(?:e[+-]?\d+)?")


def _shorter(number: re.Match[str]) -> str:
    return f"{float(number[0]):.6g}"
