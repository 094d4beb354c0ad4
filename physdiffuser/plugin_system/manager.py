"""Finding and loading plugins: provenance, name clashes, broken packages.

Installed packages name their plugins in entry points of the group `physdiffuser`. Loading runs a
stranger's code, so each one is loaded by itself, with a time limit, and what it returns is checked; one
that fails is reported by package name and the others work. This is containment of mistakes, not a
sandbox: a plugin is code that the user chose to install.
"""

from __future__ import annotations

import difflib
import importlib.metadata
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from physdiffuser.errors import PluginError
from physdiffuser.plugin_system.calls import PluginWorker
from physdiffuser.plugin_system.limits import POLICY as LOADING
from physdiffuser.plugin_system.limits import LoadLimit
from physdiffuser.plugin_system.records import BUILT_IN_PACKAGE as BUILT_IN_PACKAGE
from physdiffuser.plugin_system.records import (
    CHECKS,
    HOOKS,
    BadRecordError,
    Failure,
    Origin,
    Registered,
    Spec,
    describe,
)

if TYPE_CHECKING:
    import click

    from physdiffuser.core.generator import GeneratorSpec
    from physdiffuser.plugin_system.guard import GuardedGrid, GuardedOperator
    from physdiffuser.specs import AttentionSpec, FamilySpec

# The generators that ship are registered by a module of the same form as a plugin.
BUILT_IN = "physdiffuser.generation.builtin"
# Where the names of the families that ship and the check of families are.
FAMILIES, FAMILY_CHECKS = "physdiffuser.functions.table", "physdiffuser.functions.checks"
# Seconds for each call of a family's grid when it is loaded.
GRID_LIMIT = 2.0
GROUP = "physdiffuser"
COMMAND_GROUP = "physdiffuser.commands"


@dataclass
class Plugins:
    """What is installed, by kind and name.

    `attention`, `generator` and `operator` look one up by name; `warnings` holds what failed, and
    `seconds` the time limit of the run in progress.
    """

    attentions: dict[str, Registered[AttentionSpec]] = field(default_factory=dict)
    generators: dict[str, Registered[GeneratorSpec]] = field(default_factory=dict)
    operators: dict[str, Registered[Any]] = field(default_factory=dict)
    families: dict[str, Registered[FamilySpec]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    guards: list[GuardedOperator | GuardedGrid] = field(default_factory=list)
    seconds: float = float("inf")

    @property
    def warnings(self) -> tuple[str, ...]:
        """One message per plugin that cannot be used."""
        return tuple(failure.warning for failure in self.failures)

    @property
    def faults(self) -> tuple[str, ...]:
        """One message per plugin operator or grid that has misbehaved in this process so far."""
        return tuple(fault for guard in self.guards if (fault := guard.warning) is not None)

    def build_limit(self) -> float:
        """Seconds that a plugin may take to build a generator."""
        from physdiffuser.plugin_system.guard import POLICY

        return min(POLICY.build_limit, LOADING.share * self.seconds)

    def attention(self, name: str) -> AttentionSpec:
        """The attention variant of that name; raises PluginError, saying why, if there is none."""
        return self._find("attention", self.attentions, name)

    def generator(self, name: str) -> GeneratorSpec:
        """The generator of that name; raises PluginError, saying why, if there is none."""
        return self._find("generator", self.generators, name)

    def operator(self, name: str) -> Any:
        """The operator a plugin registered by that name; raises PluginError if there is none."""
        return self._find("operator", self.operators, name)

    def all(self) -> Iterator[Registered[Any]]:
        """Every record, by kind and then by name."""
        for table in (self.attentions, self.families, self.generators, self.operators):
            yield from (table[name] for name in sorted(table))

    def _find(self, kind: str, table: Mapping[str, Registered[Spec]], name: str) -> Spec:
        if name in table:
            return table[name].spec
        for failure in self.failures:
            if name in failure.names:
                raise PluginError(f"{kind} {name!r} cannot be used: {failure.warning}")
        near = difflib.get_close_matches(name, list(table), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        message = f"no {kind} is called {name!a}{hint} Known are {' '.join(sorted(table)) or 'none'}"
        if self.failures:
            message += f". These plugins failed: {'; '.join(self.warnings)}"
        raise PluginError(message)


def load_plugins(plugins: bool | None = None, *, time: float | None = None) -> Plugins:
    """Everything installed, loaded once a process.

    Parameters
    ----------
    plugins
        False loads only what the package itself ships (`--no-plugins`). None stands for what the last
        call said, and at first for True: parts deep inside need not pass it on.
    time
        Seconds that the run has in all, inf for no limit; loading takes half of it at most. None when no
        run begins.
    """
    if plugins is not None:
        _last_said[0] = plugins
    known = _loaded.get(_last_said[0])
    if known is None:
        known = _loaded[_last_said[0]] = _load(_last_said[0], LoadLimit.for_run(time or float("inf")))
    if time is not None:
        known.seconds = time
    return known


_last_said = [True]
_loaded: dict[bool, Plugins] = {}


def _load(plugins: bool, limit: LoadLimit) -> Plugins:
    loaded = Plugins()
    loader = _Loader(loaded, limit)
    from physdiffuser.version import version

    loader.register(importlib.import_module(BUILT_IN), Origin(BUILT_IN_PACKAGE, version(), "built in"))
    for origin, entry in entry_points(GROUP, loaded.failures):
        if plugins or origin.built_in:
            loader.load(entry, origin)
    loader.settle()
    return loaded


def entry_points(
    group: str, failures: list[Failure] | None = None
) -> list[tuple[Origin, importlib.metadata.EntryPoint]]:
    """Entry points of a group with the package each came from, in the order of package and name.

    Reads metadata only; nothing is imported. One distribution with broken metadata does not hide the
    others, which `importlib.metadata.entry_points` would let it do.
    """
    found: dict[tuple[str, str, str], tuple[Origin, importlib.metadata.EntryPoint]] = {}
    seen: set[str] = set()
    for distribution in importlib.metadata.distributions():
        try:
            # The text is looked through before it is parsed: most packages have nothing for us.
            text = distribution.read_text("entry_points.txt")
            if not text or f"[{group}]" not in text:
                continue
            package = re.sub(r"[-_.]+", "-", distribution.name).lower()
            if package in seen:
                continue  # an older copy further down the path
            seen.add(package)
            for entry in distribution.entry_points:
                if entry.group == group:
                    origin = Origin(package, distribution.version, f"{entry.name} = {entry.value}")
                    found[package, entry.name, entry.value] = (origin, entry)
        except Exception as error:
            if failures is not None:
                location = getattr(distribution, "_path", "unknown")
                failures.append(
                    Origin(str(location), "", "entry_points.txt").failed(
                        f"its metadata cannot be read ({describe(error)})"
                    )
                )
    return [found[key] for key in sorted(found)]


def load_command(name: str, cli: click.Group) -> click.Command:
    """A command of a plugin, by the name of its entry point in the group `physdiffuser.commands`.

    The entry point is a click command, or a module that implements `physdiffuser_commands`.

    Raises
    ------
    PluginError
        If no package provides it, two do, or the one that does fails.
    """
    import click

    entries = [(origin, entry) for origin, entry in entry_points(COMMAND_GROUP) if entry.name == name]
    if not entries:
        raise PluginError(f"no installed package provides the command {name!a}")
    if len(entries) > 1:
        packages = " and ".join(origin.package for origin, _ in entries)
        raise PluginError(f"the command {name!r} is provided by {packages}; uninstall one of them")
    origin, entry = entries[0]
    # Not under the time limit: it would put the command, and its signals, in a thread.
    try:
        loaded = entry.load()
        if isinstance(loaded, click.Command):
            return loaded
        group = click.Group(name=cli.name)
        manager = _plugin_manager()
        manager.register(loaded, name=entry.name)
        manager.hook.physdiffuser_commands(cli=group)
    except (Exception, SystemExit) as error:
        reason = f"it fails to load ({describe(error)})"
        raise PluginError(f"command {name!r}: {origin.failed(reason).warning}") from error
    command = group.commands.get(name)
    if command is None:
        reason = f"it adds no command {name!r}"
        raise PluginError(f"command {name!r}: {origin.failed(reason).warning}")
    return command


def _plugin_manager() -> Any:
    import pluggy

    from physdiffuser import hookspecs

    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    return manager


class _Loader:
    """Loads one plugin after the other and sorts what they return into the tables."""

    def __init__(self, loaded: Plugins, limit: LoadLimit) -> None:
        self.loaded = loaded
        self.limit = limit
        self.manager = _plugin_manager()
        self.offered: dict[tuple[str, str], list[Registered[Any]]] = {}

    def load(self, entry: importlib.metadata.EntryPoint, origin: Origin) -> None:
        self._guarded(partial(self._load, entry, origin), origin, (entry.name,))

    def _load(self, entry: importlib.metadata.EntryPoint, origin: Origin) -> list[Registered[Any]]:
        return self._collect(entry.load(), origin)

    def register(self, plugin: object, origin: Origin) -> None:
        self._guarded(partial(self._collect, plugin, origin), origin, ())

    def _guarded(self, load: partial[list[Registered[Any]]], origin: Origin, names: tuple[str, ...]) -> None:
        worker = PluginWorker()
        watch = self.limit.watch(worker)
        try:
            records = load() if origin.built_in else worker.call(load, watch)
        except TimeoutError:
            self.loaded.failures.append(origin.failed(self.limit.reason, names))
        except BadRecordError as error:
            self.loaded.failures.append(origin.failed(f"it is refused ({error})", (*names, error.name)))
        except Exception as error:
            self.loaded.failures.append(origin.failed(f"it fails to load ({describe(error)})", names))
        else:
            for record in records:
                self.offered.setdefault((record.kind, record.name), []).append(record)
        finally:
            watch.end()
            worker.close()

    def _collect(self, plugin: object, origin: Origin) -> list[Registered[Any]]:
        """All records of one plugin; raises if any of them is not what the hook asks for."""
        self.manager.register(plugin, name=f"{origin.package}: {origin.entry_point}")
        others = [known for known in self.manager.get_plugins() if known is not plugin]
        records: list[Registered[Any]] = []
        hooks = 0
        for kind, check in CHECKS.items():
            hook = HOOKS.get(kind, f"physdiffuser_{kind}s")
            caller = self.manager.subset_hook_caller(hook, remove_plugins=others)
            hooks += len(caller.get_hookimpls())
            for result in caller():
                for spec in result if isinstance(result, list | tuple) else (result,):
                    try:
                        check(spec)
                    except Exception as error:
                        raise BadRecordError(str(getattr(spec, "name", "")), describe(error)) from error
                    records.append(Registered(spec.name, kind, origin, spec, spec))
        if not hooks:
            raise TypeError("it implements no hook; is each function marked with @hookimpl?")
        if not records:
            raise TypeError("its hooks return nothing")
        return records

    def settle(self) -> None:
        """Fill the tables, once all names are known; a name offered twice is nobody's."""
        # Families last: their formulas may hold operators of plugins.
        for (kind, name), records in sorted(self.offered.items(), key=lambda item: item[0][0] == "family"):
            own = [record for record in records if record.origin.built_in]
            chosen = own or records
            if len(records) > 1:
                packages = " and ".join(
                    f"{record.origin.package} ({record.origin.entry_point})" for record in records
                )
                kept = f"; {BUILT_IN_PACKAGE}'s own is used" if own else "; neither is used"
                for record in records:
                    if record not in own:
                        self.loaded.failures.append(
                            record.origin.failed(
                                f"the {kind} {name!r} is provided by {packages}{kept}", (name,)
                            )
                        )
                if not own:
                    continue
            self._accept(chosen[0])

    def _accept(self, record: Registered[Any]) -> None:
        from physdiffuser.plugin_system.guard import GuardedGenerator

        match record.kind:
            case "attention":
                self.loaded.attentions[record.name] = record
            case "generator":
                if not record.origin.built_in:
                    build = partial(
                        GuardedGenerator, record.origin.package, record.spec, self.loaded.build_limit
                    )
                    record = replace(record, spec=replace(record.spec, build=build))
                self.loaded.generators[record.name] = record
            case "family":
                self._accept_family(record)
            case _:
                self._accept_operator(record)

    def _accept_family(self, record: Registered[FamilySpec]) -> None:
        from physdiffuser.plugin_system.guard import GuardedGrid

        if record.name in importlib.import_module(FAMILIES).built_in_names():
            packages = f"{record.origin.package} ({record.origin.entry_point}) and {BUILT_IN_PACKAGE}"
            reason = f"the family {record.name!r} is provided by {packages}; {BUILT_IN_PACKAGE}'s own is used"
            self.loaded.failures.append(record.origin.failed(reason, (record.name,)))
            return
        try:
            importlib.import_module(FAMILY_CHECKS).check_family(record.spec, limit=GRID_LIMIT)
        except Exception as error:
            failure = record.origin.failed(f"it is refused ({describe(error)})", (record.name,))
            self.loaded.failures.append(failure)
            return
        guards = {
            use: GuardedGrid(record.origin.package, record.spec, use, grid)
            for use, grid in record.spec.grids.items()
        }
        self.loaded.guards.extend(guards.values())
        self.loaded.families[record.name] = replace(record, spec=replace(record.spec, grids=guards))

    def _accept_operator(self, record: Registered[Any]) -> None:
        from physdiffuser.expressions.operators import OPERATORS, register
        from physdiffuser.plugin_system.guard import GuardedOperator

        guard = GuardedOperator(record.origin.package, record.spec)
        spec = replace(record.spec, evaluate=guard.evaluate, derivatives=guard.derivatives)
        try:
            if record.name not in _REGISTERED_OPERATORS:
                register(spec)
                _REGISTERED_OPERATORS.add(record.name)
        except ValueError as error:
            self.loaded.failures.append(record.origin.failed(str(error), (record.name,)))
        else:
            self.loaded.guards.append(guard)
            self.loaded.operators[record.name] = replace(record, spec=OPERATORS[record.name])


_REGISTERED_OPERATORS: set[str] = set()
