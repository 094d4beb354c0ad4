"""Physical constants, and the known constants a user gives.

Values: CODATA recommended values 2022 (https://physics.nist.gov/constants; Mohr, Newell, Taylor and Tiesinga,
"CODATA Recommended Values of the Fundamental Physical Constants: 2022"). The seven defining constants of
the SI and what follows from them are exact; the standard acceleration of gravity is conventional.
"""

from __future__ import annotations

import difflib
import keyword
import math
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from physdiffuser.errors import UsageError
from physdiffuser.expressions.operators import OPERATORS, SPELLINGS
from physdiffuser.expressions.tree import Symbol
from physdiffuser.units.unit import Unit


@dataclass(frozen=True)
class PhysicalConstant:
    """A constant of nature.

    Attributes
    ----------
    symbol
        How formulas write it.
    name
        In words.
    value
        In SI units.
    unit
        Its unit.
    uncertainty
        Standard uncertainty, in the same unit; 0 for exact values.
    """

    symbol: str
    name: str
    value: float
    unit: Unit
    uncertainty: float = 0.0


def _constants(rows: tuple[tuple[str, str, float, str, float], ...]) -> Mapping[str, PhysicalConstant]:
    return {
        symbol: PhysicalConstant(symbol, name, value, Unit.parse(unit), uncertainty)
        for symbol, name, value, unit, uncertainty in rows
    }


PHYSICAL_CONSTANTS: Mapping[str, PhysicalConstant] = _constants(
    (
        ("c", "speed of light in vacuum", 299_792_458.0, "m/s", 0.0),
        ("h", "Planck constant", 6.626_070_15e-34, "J*s", 0.0),
        ("hbar", "reduced Planck constant", 6.626_070_15e-34 / (2 * math.pi), "J*s", 0.0),
        ("e", "elementary charge", 1.602_176_634e-19, "C", 0.0),
        ("k_B", "Boltzmann constant", 1.380_649e-23, "J/K", 0.0),
        ("N_A", "Avogadro constant", 6.022_140_76e23, "1/mol", 0.0),
        ("R", "molar gas constant", 6.022_140_76e23 * 1.380_649e-23, "J/(mol*K)", 0.0),
        ("F", "Faraday constant", 6.022_140_76e23 * 1.602_176_634e-19, "C/mol", 0.0),
        ("sigma_SB", "Stefan-Boltzmann constant", 5.670_374_419_184_429e-8, "W/(m**2*K**4)", 0.0),
        ("b_W", "Wien wavelength displacement law constant", 2.897_771_955_185_172e-3, "m*K", 0.0),
        ("g_n", "standard acceleration of gravity", 9.806_65, "m/s**2", 0.0),
        ("G", "Newtonian constant of gravitation", 6.674_30e-11, "m**3/(kg*s**2)", 1.5e-15),
        ("mu_0", "vacuum magnetic permeability", 1.256_637_061_27e-6, "N/A**2", 2.0e-16),
        ("epsilon_0", "vacuum electric permittivity", 8.854_187_8188e-12, "F/m", 1.4e-21),
        ("Z_0", "characteristic impedance of vacuum", 376.730_313_412, "ohm", 5.9e-8),
        ("alpha", "fine-structure constant", 7.297_352_5643e-3, "1", 1.1e-12),
        ("m_e", "electron mass", 9.109_383_7139e-31, "kg", 2.8e-40),
        ("m_p", "proton mass", 1.672_621_925_95e-27, "kg", 5.2e-37),
        ("m_n", "neutron mass", 1.674_927_500_56e-27, "kg", 8.5e-37),
        ("m_u", "atomic mass constant", 1.660_539_068_92e-27, "kg", 5.2e-37),
        ("a_0", "Bohr radius", 5.291_772_105_44e-11, "m", 8.2e-21),
        ("R_inf", "Rydberg constant", 10_973_731.568_157, "1/m", 1.2e-5),
        ("mu_B", "Bohr magneton", 9.274_010_0657e-24, "J/T", 2.9e-33),
    )
)
"""By symbol."""


AUTO = "auto"
"""Among the constants a user gives: name fitted constants that agree with physical constants."""


@dataclass(frozen=True)
class KnownConstant:
    """A constant the user names: formulas may hold it, with this value.

    Attributes
    ----------
    symbol
        Name and value, as a leaf of formulas.
    unit
        Its unit; None when not given, and then it may have any.
    """

    symbol: Symbol
    unit: Unit | None = None


def names_constants(given: str | Mapping[str, float | str | None] | None) -> bool:
    """Whether the word `auto` is among the constants: fitted ones are then named by physical constants."""
    if isinstance(given, str):
        return AUTO in (part.strip() for part in given.split(","))
    return given is not None and AUTO in given


def without_auto(
    given: str | Mapping[str, float | str | None] | None,
) -> str | Mapping[str, float | str | None] | None:
    """The constants without the word `auto`."""
    if isinstance(given, str):
        return ",".join(part for part in given.split(",") if part.strip() != AUTO)
    return given if given is None else {name: value for name, value in given.items() if name != AUTO}


def parse_constants(
    given: str | Mapping[str, float | str | None] | None, taken: Collection[str] = ()
) -> tuple[KnownConstant, ...]:
    """Read the constants a user gives.

    Parameters
    ----------
    given
        Text such as `G=6.674e-11, c, k=9e9 N*m**2/C**2`, or a mapping of names to values. A name alone
        (or with the value None) is looked up among the physical constants; a unit may follow the number.
        The word `auto` is passed over.
    taken
        Names that formulas use otherwise: the columns.

    Raises
    ------
    UsageError
        For a name that cannot be used or is not known, or a value that is no finite number.
    """
    given = without_auto(given)
    if given is None:
        return ()
    if isinstance(given, str):
        pairs: list[tuple[str, float | str | None]] = []
        for part in filter(None, map(str.strip, given.split(","))):
            name, equals, text = part.partition("=")
            pairs.append((name.strip(), text.strip() if equals else None))
    else:
        pairs = [(str(name), value) for name, value in given.items()]
    known: dict[str, KnownConstant] = {}
    for name, value in pairs:
        if name in known:
            raise UsageError(f"constant {name!a} is given twice")
        known[name] = _known(name, value, taken)
    return tuple(known.values())


def _known(name: str, value: float | str | None, taken: Collection[str]) -> KnownConstant:
    if not name.isidentifier() or keyword.iskeyword(name) or unicodedata.normalize("NFKC", name) != name:
        raise UsageError(f"constant {name!a}: the name must be an identifier, as in G=6.674e-11")
    operator = OPERATORS.get(name)
    if name == "pi" or name in SPELLINGS or (operator is not None and operator.definition is None):
        raise UsageError(f"constant {name!r}: formulas know that name already; choose another one")
    if name in taken:
        raise UsageError(f"constant {name!r}: the table has a column of that name; choose another one")
    if value is None:
        constant = PHYSICAL_CONSTANTS.get(name)
        if constant is None:
            near = difflib.get_close_matches(name, list(PHYSICAL_CONSTANTS), n=1)
            hint = f"; did you mean {near[0]}?" if near else "."
            raise UsageError(
                f"constant {name!r} has no value{hint} Known by name are {' '.join(PHYSICAL_CONSTANTS)}; "
                f"give others as {name}=VALUE"
            )
        return KnownConstant(Symbol(name, constant.value), constant.unit)
    number, _, unit = value.partition(" ") if isinstance(value, str) else (value, "", "")
    try:
        finite = float(number)
    except (TypeError, ValueError):
        finite = math.nan
    if not math.isfinite(finite) or (isinstance(number, str) and "_" in number):
        raise UsageError(f"constant {name!r}: {number!a} is no finite number; write it like {name}=6.674e-11")
    return KnownConstant(Symbol(name, finite), Unit.parse(unit) if unit.strip() else None)
