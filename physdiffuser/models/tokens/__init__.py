"""Formulas as tokens: vocabulary, grammar, skeletons and their canonical arrangement. No torch."""
