"""`physdiffuser plugins`: list, create and check plugins."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import click

from physdiffuser.cli.process import messages
from physdiffuser.cli.process.stdout import reserved_stdout
from physdiffuser.cli.shared.options import FiniteNumber
from physdiffuser.errors import FileError, PluginError, UsageError
from physdiffuser.io.atomic import write_text_atomic

if TYPE_CHECKING:
    from physdiffuser.plugin_system.manager import Plugins
    from physdiffuser.plugin_system.records import Registered


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


@click.group(short_help="List, create and check plugins.")
def plugins() -> None:
    """List, create and check plugins: attention variants, families, generators, operators, commands."""


@plugins.command("list")
@click.option("--no-plugins", is_flag=True, help="Only what ships with the program.")
@reserved_stdout()
def list_plugins(no_plugins: bool) -> None:
    """What is installed, and which package it comes from."""
    from physdiffuser.plugin_system.manager import COMMAND_GROUP, entry_points, load_plugins

    loaded = load_plugins(not no_plugins)
    rows = [
        (
            record.kind,
            record.name,
            f"{record.origin.package} {record.origin.version}",
            _entry(record.origin.entry_point),
        )
        for record in loaded.all()
    ]
    rows += [
        ("command", entry.name, f"{origin.package} {origin.version}", entry.value)
        for origin, entry in entry_points(COMMAND_GROUP)
        if not no_plugins or origin.built_in
    ]
    titles = ("kind", "name", "package", "from")
    widths = [max(len(row[place]) for row in (titles, *rows)) for place in range(3)]
    for row in (titles, *rows):
        padded = (text.ljust(width) for text, width in zip(row, (*widths, 0), strict=True))
        messages.output("  ".join(padded).rstrip() + "\n")
    for warning in loaded.warnings:
        messages.warning(warning)


@plugins.command("new")
@click.argument("name")
@click.option(
    "--kind", type=click.Choice(KINDS), default="generator", show_default=True, help="What it will add."
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder for the package; by default its name, here."
)
@reserved_stdout()
def new_plugin(name: str, kind: str, out: Path | None) -> None:
    """Write a complete small package that installs and passes its own test."""
    folder = out or Path(f"physdiffuser-{name.replace('_', '-')}")
    for path in write_plugin(name, kind, folder):
        messages.output(f"{path}\n")
    messages.note(f"next: pip install -e {folder} && physdiffuser plugins check {name}")


@plugins.command("check")
@click.argument("name")
@click.option(
    "--limit",
    type=FiniteNumber(above=0),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="Time limit for each call of the plugin.",
)
@reserved_stdout()
def check_plugin(name: str, limit: float) -> None:
    """Run the contract checks on an installed plugin, by its name or its package's.

    A call of the plugin that does not return within the time limit fails the check.
    """
    from physdiffuser.plugin_system.manager import load_plugins

    loaded = load_plugins()
    records = [record for record in loaded.all() if name in (record.name, record.origin.package)]
    failures = [
        failure for failure in loaded.failures if name == failure.origin.package or name in failure.names
    ]
    if failures:
        raise PluginError(failures[0].warning)
    if not records:
        raise PluginError(_unknown(name, loaded))
    for record in records:
        _check(record, limit)


def _check(record: Registered[Any], limit: float) -> None:
    from physdiffuser import testing
    from physdiffuser.plugin_system.records import describe

    checks: dict[str, Callable[..., list[str]]] = {
        "attention": testing.check_attention,
        "family": testing.check_family,
        "generator": testing.check_generator,
        "operator": testing.check_operator,
    }
    messages.output(
        f"{record.kind} {record.name}, package {record.origin.package} {record.origin.version} "
        f"(at most {limit:g} s for each call)\n"
    )
    package = record.origin.package
    try:
        results = checks[record.kind](record.original, limit=limit)
    except (Exception, SystemExit) as error:
        what = str(error) if isinstance(error, testing.ContractError) else describe(error)
        raise PluginError(
            f"plugin package {package}: {record.kind} {record.name!r} fails the contract: {what}"
        ) from error
    for line in results:
        messages.output(f"  ok  {line}\n")


def _entry(entry_point: str) -> str:
    return entry_point.partition(" = ")[2] or entry_point


def _unknown(name: str, loaded: Plugins) -> str:
    import difflib

    known = {record.name for record in loaded.all()} | {record.origin.package for record in loaded.all()}
    near = difflib.get_close_matches(name, sorted(known), n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return f"no plugin or package is called {name!a}{hint} See: physdiffuser plugins list"
