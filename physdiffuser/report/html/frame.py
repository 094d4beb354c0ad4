"""The page of a run as a value: a string that a notebook shows in a frame."""

from __future__ import annotations

from html import escape

_HEIGHT = 800


class Page(str):
    """HTML of a whole page. `print` gives the HTML; a notebook shows the page itself, in a frame."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        # Sandboxed: the page's script sees the page and nothing of the notebook.
        return (
            f'<iframe title="report of physdiffuser" sandbox="allow-scripts" style="width: 100%; border: 0" '
            f'height="{_HEIGHT}" srcdoc="{escape(self)}"></iframe>'
        )
