"""The inputs of docs/robustness.md, as builders that the reader tests and the command-line tests share.

Importing the modules of the groups fills the catalogue, in the order of that page.
"""

from __future__ import annotations

import importlib

from bad_table_parts import CATALOGUE, BadInput, Case

for group in ("bad_table_files", "bad_table_cells", "bad_table_places"):
    importlib.import_module(group)

__all__ = ["CATALOGUE", "BadInput", "Case"]
