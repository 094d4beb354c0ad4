"""The rows of the table, one module for each group. Importing this package imports and so registers all."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

# The order of the rows decides between candidates that are equal otherwise, and so what random draws lead to.
# Groups that are not named here come last.
_ORDER = ("rates", "waves", "powers", "peaks", "steps", "poles", "saturation", "logarithms", "two_columns")

for _name in (*_ORDER, *sorted({module.name for module in iter_modules(__path__)} - set(_ORDER))):
    import_module(f"{__name__}.{_name}")
