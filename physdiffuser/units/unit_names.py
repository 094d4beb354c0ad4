"""What the names of units mean: SI's own by table, all others by asking pint.

Source of the table: BIPM, The International System of Units (SI), 9th edition, tables 2 and 4.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from physdiffuser.errors import UsageError
from physdiffuser.io.display import visible

SI_BASE = ("m", "kg", "s", "A", "K", "mol", "cd")

# The SI's derived units with a symbol of their own; each is one of itself, so no size is lost.
_DERIVED: Mapping[str, Mapping[str, int]] = {
    "rad": {},
    "sr": {},
    "Hz": {"s": -1},
    "N": {"m": 1, "kg": 1, "s": -2},
    "Pa": {"m": -1, "kg": 1, "s": -2},
    "J": {"m": 2, "kg": 1, "s": -2},
    "W": {"m": 2, "kg": 1, "s": -3},
    "C": {"s": 1, "A": 1},
    "V": {"m": 2, "kg": 1, "s": -3, "A": -1},
    "F": {"m": -2, "kg": -1, "s": 4, "A": 2},
    "ohm": {"m": 2, "kg": 1, "s": -3, "A": -2},
    "Ω": {"m": 2, "kg": 1, "s": -3, "A": -2},
    "S": {"m": -2, "kg": -1, "s": 3, "A": 2},
    "Wb": {"m": 2, "kg": 1, "s": -2, "A": -1},
    "T": {"kg": 1, "s": -2, "A": -1},
    "H": {"m": 2, "kg": 1, "s": -2, "A": -2},
    "lm": {"cd": 1},
    "lx": {"m": -2, "cd": 1},
    "Bq": {"s": -1},
    "Gy": {"m": 2, "s": -2},
    "Sv": {"m": 2, "s": -2},
    "kat": {"s": -1, "mol": 1},
}

_PINT_DIMENSIONS = {
    "[length]": "m",
    "[mass]": "kg",
    "[time]": "s",
    "[current]": "A",
    "[temperature]": "K",
    "[substance]": "mol",
    "[luminosity]": "cd",
}

Named = tuple[Mapping[str, Fraction | int], float, bool]


def named_unit(name: str) -> Named:
    """Exponents over the SI base, size in SI units, and whether the zero is shifted.

    Raises
    ------
    UsageError
        If the name is not known; says what to install or how to write a base unit of one's own.
    """
    if name in SI_BASE:
        return {name: 1}, 1.0, False
    if name in _DERIVED:
        return _DERIVED[name], 1.0, False
    registry = _registry()
    if registry is None:
        near = difflib.get_close_matches(name, (*SI_BASE, *_DERIVED), n=1)
        hint = f"; did you mean {near[0]}?" if near else "."
        raise UsageError(
            f"unit '{visible(name)}' is not an SI base or derived unit{hint} For prefixed and other units "
            "(km, eV, hour): pip install 'physdiffuser[units]'"
        )
    return _ask_pint(registry, name)


def _ask_pint(registry: Any, name: str) -> Named:
    import pint

    try:
        # One name, never an expression: pint has a grammar of its own, which is not for text from outside.
        unit = registry.Unit(name.replace("°", "deg") if len(name) > 1 else name)
        zero = float(registry.Quantity(0.0, unit).to_base_units().magnitude)
        one = registry.Quantity(1.0, unit).to_base_units()
        factor = float(one.magnitude) - zero
    except (pint.errors.PintError, AttributeError, ValueError, TypeError, ZeroDivisionError) as error:
        near = difflib.get_close_matches(name, (*SI_BASE, *_DERIVED), n=1)
        hint = f"; did you mean {near[0]}?" if near else "."
        raise UsageError(
            f"unknown unit '{visible(name)}'{hint} A base unit of your own is written in brackets: [{name}]"
        ) from error
    exponents: dict[str, Fraction | int] = {}
    for dimension, exponent in one.dimensionality.items():
        symbol = _PINT_DIMENSIONS.get(dimension, str(dimension).strip("[]"))
        exponents[symbol] = Fraction(exponent).limit_denominator(100)
    return exponents, factor, zero != 0.0


@lru_cache(maxsize=1)
def _registry() -> Any:
    try:
        import pint
    except ImportError:
        return None
    return pint.UnitRegistry()
