"""The report of a run as one web page: `report_html` makes it, everything else here is a part of it."""

from __future__ import annotations

from physdiffuser.report.html.page import report_html

__all__ = ["report_html"]
