"""Every extension point of physdiffuser.

A plugin is a module that implements one or more of these functions, marks each with `hookimpl`, and is
named by an entry point in the group `physdiffuser` (for `physdiffuser_commands`: `physdiffuser.commands`).
`docs/plugins.md` walks through one; `physdiffuser plugins new` writes one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click

    from physdiffuser.specs import AttentionSpec, FamilySpec, GeneratorSpec, OperatorSpec

PROJECT = "physdiffuser"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def physdiffuser_attentions() -> AttentionSpec | Sequence[AttentionSpec]:
    """Attention variants for the set encoder and the networks that read it (`--attention NAME`)."""
    raise NotImplementedError


@hookspec
def physdiffuser_generators() -> GeneratorSpec | Sequence[GeneratorSpec]:
    """Generators, which propose formulas to the search (`--generators NAME`)."""
    raise NotImplementedError


@hookspec
def physdiffuser_operators() -> OperatorSpec | Sequence[OperatorSpec]:
    """Operators, which formulas may then contain (`--operators NAME`)."""
    raise NotImplementedError


@hookspec
def physdiffuser_functions() -> FamilySpec | Sequence[FamilySpec]:
    """Function families: functions with constants inside, which the search then tries as its own."""
    raise NotImplementedError


@hookspec
def physdiffuser_commands(cli: click.Group) -> None:
    """Commands of the program: add click commands to `cli`.

    The entry point's name is the command's name, so that `--help` lists it without importing the plugin.

    Parameters
    ----------
    cli
        The program, to which the commands are added.
    """
