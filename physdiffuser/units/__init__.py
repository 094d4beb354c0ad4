"""Units of measurement as exponent vectors, and their names. Independent of expressions and tables."""
