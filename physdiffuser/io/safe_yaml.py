"""YAML from outside, read without its traps.

`yaml.safe_load` reads `5e-4` as text, `012` as ten and `no` as false, keeps the last of two equal keys
without a word, and unfolds a kilobyte of aliases into gigabytes. Here numbers and words follow YAML 1.2,
duplicate keys and aliases are refused, and size and depth are limited.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from physdiffuser.errors import UsageError

MAX_CHARACTERS = 1_000_000
MAX_DEPTH = 20


def load_yaml(text: str, source: str, *, only_text: bool = False) -> Any:
    """The value a YAML document holds: mappings, lists, text, numbers, true, false and null.

    Parameters
    ----------
    text
        The document. JSON is YAML, and is read too.
    source
        Where it came from, for messages.
    only_text
        Read every scalar as text (`no` stays "no" and `1` stays "1"), for files whose keys are names
        and whose values have a grammar of their own. An empty value is still null.

    Raises
    ------
    UsageError
        With line and column, if the document is malformed, ambiguous or too large.
    """
    import yaml

    if len(text) > MAX_CHARACTERS:
        raise UsageError(f"{source}: {len(text)} characters; at most {MAX_CHARACTERS} are read")
    loader = None
    try:
        loader = _loader(only_text)(text)
        return loader.get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise UsageError(f"{source}{where}: {error.problem or 'not valid YAML'}") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UsageError(f"{source}: not valid YAML ({reason})") from error
    finally:
        if loader is not None:
            loader.dispose()


_TAGS = {None} | {
    f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float", "seq", "map", "str")
}


@lru_cache(maxsize=2)
def _loader(only_text: bool) -> Any:
    import yaml

    class StrictLoader(yaml.SafeLoader):
        depth = 0

        def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
            if self.check_event(yaml.AliasEvent):
                event = self.peek_event()  # type: ignore[no-untyped-call]
                raise yaml.composer.ComposerError(
                    None, None, "aliases (*name) are not read; write the value out", event.start_mark
                )
            self.depth += 1
            if self.depth > MAX_DEPTH:
                mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
                raise yaml.composer.ComposerError(None, None, f"nested deeper than {MAX_DEPTH} levels", mark)
            node: yaml.Node | None = super().compose_node(parent, index)
            self.depth -= 1
            return node

        def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
            # YAML 1.1 reads 012 as ten; 1.2 as twelve.
            return int(self.construct_scalar(node))

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            seen: dict[Any, int] = {}
            for key_node, _ in node.value:
                key = self.construct_object(key_node, deep=True)
                if not isinstance(key, str | int | float | bool):
                    raise yaml.constructor.ConstructorError(
                        None, None, "a key must be text or a number", key_node.start_mark
                    )
                if key in seen:
                    raise yaml.constructor.ConstructorError(
                        None,
                        None,
                        f"the key {key!a} stands in line {seen[key]} already",
                        key_node.start_mark,
                    )
                seen[key] = key_node.start_mark.line + 1
            mapping: dict[Any, Any] = super().construct_mapping(node, deep=True)
            return mapping

    # Sets, dates, binary and the rest of YAML 1.1's types have no place in a configuration.
    StrictLoader.yaml_constructors = {
        tag: constructor for tag, constructor in yaml.SafeLoader.yaml_constructors.items() if tag in _TAGS
    }
    StrictLoader.add_constructor("tag:yaml.org,2002:int", StrictLoader.construct_yaml_int)
    _resolve_scalars(StrictLoader, only_text)
    return StrictLoader


def _resolve_scalars(loader: Any, only_text: bool) -> None:
    """What text without quotes means: null, and, unless it all stays text, true, false and numbers."""
    loader.yaml_implicit_resolvers = {}
    loader.add_implicit_resolver(
        "tag:yaml.org,2002:null", re.compile(r"(?:~|null|Null|NULL|)\Z"), ["~", "n", "N", ""]
    )
    if not only_text:
        # YAML 1.2, core schema: https://yaml.org/spec/1.2.2/#1032-tag-resolution
        loader.add_implicit_resolver(
            "tag:yaml.org,2002:bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), list("tTfF")
        )
        loader.add_implicit_resolver(
            "tag:yaml.org,2002:int", re.compile(r"[-+]?[0-9]{1,30}\Z"), list("-+0123456789")
        )
        loader.add_implicit_resolver(
            "tag:yaml.org,2002:float",
            re.compile(
                r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
                r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
            ),
            list("-+.0123456789"),
        )
