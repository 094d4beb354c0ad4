"""Several targets of one table: a law for each, parts that they share, and constants that agree tied."""
