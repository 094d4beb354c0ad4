"""The layout of a formula with fitted constants, as a textbook writes it."""
