"""Sphinx settings of the site that `python docs/build.py` makes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

# The staged pages stand beside this file's copy; the package is imported from where it is installed,
# or else from the checkout that `build.py` names.
sys.path.append(str(Path(__file__).resolve().parents[1]))

from physdiffuser import __version__

project = "physdiffuser"
author = "the physdiffuser authors"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
root_doc = "docs/index"
exclude_patterns = ["**/node_modules", "_build"]
language = "en"

html_theme = "furo"
html_title = f"physdiffuser {__version__}"
html_show_copyright = False
html_copy_source = False

myst_heading_anchors = 3

# Docstrings write code in single backticks.
default_role = "code"
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_rtype = False
# The attributes that a docstring lists are those of the class: one entry, not two.
napoleon_use_ivar = True
napoleon_preprocess_types = False
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_default_options = {
    "members": True,
    # Written by scikit-learn, with links into its own documentation.
    "exclude-members": "set_fit_request, set_predict_request, set_score_request",
}
# OperatorSpec and GeneratorSpec exist twice: the plugin's record and the program's own.
suppress_warnings = ["ref.python"]
python_use_unqualified_type_names = True


def _several_names(
    app: object, kind: str, name: str, item: object, options: object, lines: list[str]
) -> None:
    """`low, high` in a list of attributes are two names; with a blank between them, a type and a name."""
    for number, line in enumerate(lines):
        if line.startswith(":ivar "):
            names, colon, text = line[6:].partition(":")
            lines[number] = ":ivar " + names.replace(", ", ",") + colon + text


def setup(app: Any) -> None:
    """Called by Sphinx; after napoleon, whose priority is 500."""
    app.connect("autodoc-process-docstring", _several_names, priority=600)
