"""The group of commands. A command's module is imported when that command is run, not before."""

from __future__ import annotations

import difflib
import importlib
from dataclasses import dataclass

import click

from physdiffuser.cli.process.early_signals import interrupt_on_signals


@dataclass(frozen=True)
class LazyCommand:
    """Where a command is, and the line `--help` shows for it without importing it."""

    module: str
    attribute: str
    summary: str
    handles_signals: bool = False
    """Whether it answers Ctrl-C itself, from its first statement on."""


BUILT_IN = {
    "solve": LazyCommand("physdiffuser.cli.solve", "solve", "Find the law behind a table.", True),
    "dynamics": LazyCommand(
        "physdiffuser.cli.dynamics", "dynamics", "Find the differential equations behind trajectories."
    ),
    "predict": LazyCommand("physdiffuser.cli.predict", "predict", "Apply a law that was found to a table."),
    "export": LazyCommand("physdiffuser.cli.export", "export", "Write a law as Python, C, LaTeX, ..."),
    "app": LazyCommand(
        "physdiffuser.cli.web_page", "app", "Open a page in the browser: from a table to its law."
    ),
    "inspect": LazyCommand("physdiffuser.cli.inspect", "inspect", "Look inside the learned generators."),
}

# Commands that ship with the package but come through the entry points, as a stranger's would.
_SUMMARIES = {
    "evaluate": "Run a benchmark suite and report recovery rates.",
    "train": "Train the learned generators.",
    "plugins": "List, create and check plugins.",
}


class LazyGroup(click.Group):
    """Commands of the package by table, commands of plugins by entry point."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands; imports nothing."""
        return [*BUILT_IN, *sorted(set(_plugin_commands()) - set(BUILT_IN))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command.

        Raises
        ------
        PluginError
            If a plugin's command fails to load.
        """
        lazy = BUILT_IN.get(cmd_name)
        if lazy is not None:
            command: click.Command = getattr(importlib.import_module(lazy.module), lazy.attribute)
            return command
        if cmd_name not in _plugin_commands():
            return None
        from physdiffuser.cli.process.stdout import reserved_stdout
        from physdiffuser.plugin_system.manager import load_command

        # What the module prints while it is imported is no output of the command; what the command prints is.
        with reserved_stdout(restore=True):
            return load_command(cmd_name, self)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which one was meant."""
        if args and not args[0].startswith("-"):
            names = self.list_commands(ctx)
            if args[0] not in names:
                near = difflib.get_close_matches(args[0], names, n=1)
                hint = f" Did you mean '{near[0]}'?" if near else f" Commands are {', '.join(names)}."
                ctx.fail(f"No such command '{args[0]}'.{hint}")
        name, command, rest = super().resolve_command(ctx, args)
        lazy = BUILT_IN.get(name or "")
        if lazy is None or not lazy.handles_signals:
            # The command has been imported, and may have to tidy up when it is interrupted.
            interrupt_on_signals()
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from what is known without importing them."""
        rows = [(name, lazy.summary) for name, lazy in BUILT_IN.items()]
        rows += [
            (name, _SUMMARIES.get(name, "") if package == "physdiffuser" else f"From the package {package}.")
            for name, package in sorted(_plugin_commands().items())
            if name not in BUILT_IN
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _plugin_commands() -> dict[str, str]:
    """Names of the commands that installed packages add, and the package of each."""
    from physdiffuser.plugin_system.manager import COMMAND_GROUP, entry_points

    return {entry.name: origin.package for origin, entry in entry_points(COMMAND_GROUP)}


def _version(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from physdiffuser.version import version

        click.echo(f"physdiffuser {version()}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="'physdiffuser COMMAND --help' describes a command; start with: physdiffuser solve data.csv",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version."
)
@click.pass_context
def cli(context: click.Context) -> None:
    """Find the law in a table of measurements: a short, exact, verified equation."""
    if context.invoked_subcommand is None:
        from physdiffuser.cli.greeting import greeting

        click.echo(greeting(), nl=False)
