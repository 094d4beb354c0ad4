"""The former place of `physdiffuser.expressions.units.dimensionless`, for plugins of version 1."""

from physdiffuser.expressions.units.dimensionless import dimensionless_groups, monomial

__all__ = ["dimensionless_groups", "monomial"]
