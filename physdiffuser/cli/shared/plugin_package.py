"""Writing a new plugin package from the templates that ship with the program."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from string import Template

from physdiffuser.errors import FileError, UsageError
from physdiffuser.io.atomic import write_text_atomic

KINDS = ("generator", "operator", "family", "attention")

# What each kind adds to the files that all have: template, and its place in the package.
_FILES: Mapping[str, Mapping[str, str]] = {
    "generator": {"generator_module": "{package}/__init__.py", "generator_test": "tests/test_contract.py"},
    "operator": {"operator_module": "{package}/__init__.py", "operator_test": "tests/test_contract.py"},
    "family": {"family_module": "{package}/__init__.py", "family_test": "tests/test_contract.py"},
    "attention": {
        "attention_module": "{package}/__init__.py",
        "attention_network": "{package}/attention.py",
        "attention_test": "tests/test_contract.py",
    },
}
_USAGE = {
    "generator": "    physdiffuser solve data.csv --generators enumeration,{name}",
    "operator": "    physdiffuser solve data.csv --operators add,mul,div,{name}",
    "family": "    physdiffuser solve data.csv      # the family is tried with all others",
    "attention": (
        "    physdiffuser train config.yaml      # with `model: {{encoder: {{attention: {name}}}}}` in it\n"
        "    PHYSDIFFUSER_WEIGHTS=FOLDER/model physdiffuser solve data.csv --generators autoregressive "
        "--attention {name}\n\n"
        "FOLDER is the one that the configuration names as `out`."
    ),
}
_NAME = re.compile(r"[a-z](?:[a-z0-9]|[-_](?=[a-z0-9])){0,39}")


def write_plugin(name: str, kind: str, folder: Path) -> list[Path]:
    """Write a complete package: metadata with the entry point, module, test, README.

    Parameters
    ----------
    name
        What the plugin is called on the command line: lower-case letters, digits, `-` and `_`.
    kind
        One of `KINDS`.
    folder
        Where to put it; must not exist, or be empty.

    Returns
    -------
    The files written.

    Raises
    ------
    UsageError
        If the name cannot be used.
    FileError
        If the folder has files already, or cannot be written.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"plugin name {name!a}: must start with a letter and have lower-case letters, digits, "
            "and single - or _ between them (at most 40), for example power-law"
        )
    if kind == "operator" and "-" in name:
        raise UsageError(f"operator name {name!r}: formulas read '-' as minus; use {name.replace('-', '_')}")
    package = f"physdiffuser_{name.replace('-', '_')}"
    values = {
        "name": name,
        "kind": kind,
        "package": package,
        "entry": name.replace("-", "_"),
        "distribution": f"physdiffuser-{name.replace('_', '-')}",
        "usage": _USAGE[kind].format(name=name),
    }
    places = {"pyproject.toml": "pyproject.toml", "README.md": "README.md"}
    places |= {f"{template}.py": place.format(package=package) for template, place in _FILES[kind].items()}
    templates = resources.files("physdiffuser.cli") / "plugin_templates"
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise FileError(f"{folder}: exists already and is not an empty folder; choose another with --out")
        written = []
        for template, place in places.items():
            text = (templates / f"{template}.tmpl").read_text(encoding="utf-8")
            path = folder / place
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text_atomic(path, Template(text).substitute(values))
            written.append(path)
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{error.filename or folder}: {error.strerror or error}") from error
    return written
