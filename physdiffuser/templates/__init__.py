"""A law whose structure is partly known: unknown functions in a given formula are found by searches."""
