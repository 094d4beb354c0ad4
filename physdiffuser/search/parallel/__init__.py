"""Generators that work ahead of the search, in processes of their own where there are cores for them."""
