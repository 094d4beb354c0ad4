"""The unknown functions of a template in the JSON document, both ways."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from physdiffuser.core.solution import Solution
from physdiffuser.core.solution_parts.template_parts import TemplateParts
from physdiffuser.report.documents.document_reader import Reader

Json: TypeAlias = dict[str, Any]


def template_document(solution: Solution) -> Json:
    """The keys `template` and `template_form`, where there is a template."""
    parts = solution.template
    if parts is None:
        return {}
    constants = {name: value if math.isfinite(value) else None for name, value in parts.constants.items()}
    arguments = {name: list(names) for name, names in parts.arguments.items()}
    return {
        "template": dict(parts.functions),
        "template_form": {"text": parts.text, "arguments": arguments, "constants": constants},
    }


def read_template_parts(reader: Reader) -> TemplateParts | None:
    """The functions of a document; None where there is no template."""
    if reader.optional("template") is None:
        return None
    form = reader.child("template_form")
    names = form.child("arguments")
    arguments = {name: names.texts(name) for name in names.keys()}  # noqa: SIM118  # a reader, not a mapping
    constants = {name: math.nan if one is None else one for name, one in form.numbers("constants").items()}
    return TemplateParts(form.text("text"), reader.texts_by_name("template"), arguments, constants)
