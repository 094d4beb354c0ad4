"""`physdiffuser plugins`: list, create and check plugins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from physdiffuser.cli import messages
from physdiffuser.cli.plugin_package import KINDS, write_plugin
from physdiffuser.errors import PluginError

if TYPE_CHECKING:
    from physdiffuser.plugin_manager import Plugins
    from physdiffuser.plugin_records import Registered


@click.group(short_help="List, create and check plugins.")
def plugins() -> None:
    """List, create and check plugins: attention variants, generators, operators, commands."""


@plugins.command("list")
@click.option("--no-plugins", is_flag=True, help="Only what ships with the program.")
def list_plugins(no_plugins: bool) -> None:
    """What is installed, and which package it comes from."""
    from physdiffuser.plugin_manager import COMMAND_GROUP, entry_points, load_plugins

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
        click.echo("  ".join(padded).rstrip())
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
def new_plugin(name: str, kind: str, out: Path | None) -> None:
    """Write a complete small package that installs and passes its own test."""
    folder = out or Path(f"physdiffuser-{name.replace('_', '-')}")
    for path in write_plugin(name, kind, folder):
        click.echo(path)
    messages.note(f"next: pip install -e {folder} && pytest {folder} && physdiffuser plugins check {name}")


@plugins.command("check")
@click.argument("name")
def check_plugin(name: str) -> None:
    """Run the contract checks on an installed plugin, by its name or its package's."""
    from physdiffuser.plugin_manager import load_plugins

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
        _check(record)


def _check(record: Registered[Any]) -> None:
    from physdiffuser import testing

    checks: dict[str, Callable[[Any], list[str]]] = {
        "attention": testing.check_attention,
        "generator": testing.check_generator,
        "operator": testing.check_operator,
    }
    click.echo(f"{record.kind} {record.name}, package {record.origin.package} {record.origin.version}")
    package = record.origin.package
    try:
        results = checks[record.kind](record.original)
    except (Exception, SystemExit) as error:
        what = str(error) if isinstance(error, testing.ContractError) else f"{type(error).__name__}: {error}"
        raise PluginError(
            f"plugin package {package}: {record.kind} {record.name!r} fails the contract: {what}"
        ) from error
    for line in results:
        click.echo(f"  ok  {line}")


def _entry(entry_point: str) -> str:
    return entry_point.partition(" = ")[2] or entry_point


def _unknown(name: str, loaded: Plugins) -> str:
    import difflib

    known = {record.name for record in loaded.all()} | {record.origin.package for record in loaded.all()}
    near = difflib.get_close_matches(name, sorted(known), n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return f"no plugin or package is called {name!a}{hint} See: physdiffuser plugins list"
