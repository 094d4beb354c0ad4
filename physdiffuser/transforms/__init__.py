"""Invertible transforms of the target: if `y = T(g)`, the law of `g` may be simpler."""
