"""Units of formulas: dimensional checks, dimensionless groups, and formulas in other units."""
