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
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from physdiffuser.errors import PluginError

if TYPE_CHECKING:
    import click

    from physdiffuser.generation.protocol import GeneratorSpec
    from physdiffuser.specs import AttentionSpec

GROUP = "physdiffuser"
COMMAND_GROUP = "physdiffuser.commands"
LOAD_LIMIT = 30.0
"""Seconds that importing one plugin and asking it for its records may take."""

BUILT_IN_PACKAGE = "physdiffuser"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
Spec = TypeVar("Spec")


@dataclass(frozen=True)
class Registered(Generic[Spec]):
    """A record and the package it came from.

    Attributes
    ----------
    name, kind
        As the record names itself; "attention", "generator" or "operator".
    package, version
        The installed distribution.
    entry_point
        Name and value of the entry point, as in its metadata.
    spec
        The record, behind guards if it is a stranger's.
    original
        The record as the plugin returned it.
    """

    name: str
    kind: str
    package: str
    version: str
    entry_point: str
    spec: Spec
    original: Spec


@dataclass(frozen=True)
class Failure:
    """A plugin, or a name of it, that cannot be used.

    Attributes
    ----------
    package, version, entry_point
        Where it came from.
    reason
        One sentence.
    names
        The names that are lost, where they are known: asking for one of them is an error.
    """

    package: str
    version: str
    entry_point: str
    reason: str
    names: tuple[str, ...] = ()

    @property
    def warning(self) -> str:
        """The message for the user."""
        return f"plugin package {self.package} {self.version} ({self.entry_point}): {self.reason}"


@dataclass
class Plugins:
    """What is installed, by kind and name.

    `attention`, `generator` and `operator` look one up by name; `warnings` holds what failed.
    """

    attentions: dict[str, Registered[AttentionSpec]] = field(default_factory=dict)
    generators: dict[str, Registered[GeneratorSpec]] = field(default_factory=dict)
    operators: dict[str, Registered[Any]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)

    @property
    def warnings(self) -> tuple[str, ...]:
        """One message per plugin that cannot be used."""
        return tuple(failure.warning for failure in self.failures)

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
        for table in (self.attentions, self.generators, self.operators):
            yield from (table[name] for name in sorted(table))

    def _find(self, kind: str, table: Mapping[str, Registered[Spec]], name: str) -> Spec:
        if name in table:
            return table[name].spec
        for failure in self.failures:
            if name in failure.names:
                raise PluginError(f"{kind} {name!r} cannot be used: {failure.warning}")
        near = difflib.get_close_matches(name, list(table), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        message = f"no {kind} is called {name!a}{hint} Known are {' '.join(sorted(table)) or 'none'}"
        if self.failures:
            message += f". These plugins failed: {'; '.join(self.warnings)}"
        raise PluginError(message)


def available_generators(plugins: bool = True) -> dict[str, GeneratorSpec]:
    """All generators by name: the built-in ones, and those of plugins unless told otherwise."""
    return {name: entry.spec for name, entry in load_plugins(plugins).generators.items()}


@lru_cache(maxsize=2)
def load_plugins(plugins: bool = True, limit: float = LOAD_LIMIT) -> Plugins:
    """Load everything once a process.

    Parameters
    ----------
    plugins
        False loads only what the package itself ships (`--no-plugins`).
    limit
        Seconds for each plugin.
    """
    loaded = Plugins()
    loader = _Loader(loaded, limit)
    from physdiffuser import __version__
    from physdiffuser.generation import builtin

    loader.register(builtin, _Origin(BUILT_IN_PACKAGE, __version__, "built in"))
    for origin, entry in entry_points(GROUP, loaded.failures):
        if plugins or origin.package == BUILT_IN_PACKAGE:
            loader.load(entry, origin)
    loader.settle()
    return loaded


@dataclass(frozen=True)
class _Origin:
    package: str
    version: str
    entry_point: str

    def failed(self, reason: str, names: tuple[str, ...] = ()) -> Failure:
        return Failure(self.package, self.version, self.entry_point, reason, names)


def entry_points(
    group: str, failures: list[Failure] | None = None
) -> list[tuple[_Origin, importlib.metadata.EntryPoint]]:
    """Entry points of a group with the package each came from, in the order of package and name.

    Reads metadata only; nothing is imported. One distribution with broken metadata does not hide the
    others, which `importlib.metadata.entry_points` would let it do.
    """
    found: dict[tuple[str, str, str], tuple[_Origin, importlib.metadata.EntryPoint]] = {}
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
                    origin = _Origin(package, distribution.version, f"{entry.name} = {entry.value}")
                    found[package, entry.name, entry.value] = (origin, entry)
        except Exception as error:
            if failures is not None:
                location = getattr(distribution, "_path", "unknown")
                failures.append(
                    _Origin(str(location), "", "entry_points.txt").failed(
                        f"its metadata cannot be read ({_describe(error)})"
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
        reason = f"it fails to load ({_describe(error)})"
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


def _describe(error: BaseException) -> str:
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class _Loader:
    """Loads one plugin after the other and sorts what they return into the tables."""

    def __init__(self, loaded: Plugins, limit: float) -> None:
        self.loaded = loaded
        self.limit = limit
        self.manager = _plugin_manager()
        self.offered: dict[tuple[str, str], list[Registered[Any]]] = {}

    def load(self, entry: importlib.metadata.EntryPoint, origin: _Origin) -> None:
        self._guarded(partial(self._load, entry, origin), origin, (entry.name,))

    def _load(self, entry: importlib.metadata.EntryPoint, origin: _Origin) -> list[Registered[Any]]:
        return self._collect(entry.load(), origin)

    def register(self, plugin: object, origin: _Origin) -> None:
        self._guarded(partial(self._collect, plugin, origin), origin, ())

    def _guarded(self, load: partial[list[Registered[Any]]], origin: _Origin, names: tuple[str, ...]) -> None:
        from physdiffuser.plugin_guard import call_with_limit

        try:
            records = call_with_limit(load, self.limit)
        except TimeoutError:
            self.loaded.failures.append(
                origin.failed(f"it did not finish loading within {self.limit:g} s", names)
            )
        except (Exception, SystemExit, GeneratorExit) as error:
            self.loaded.failures.append(origin.failed(f"it fails to load ({_describe(error)})", names))
        else:
            for record in records:
                self.offered.setdefault((record.kind, record.name), []).append(record)

    def _collect(self, plugin: object, origin: _Origin) -> list[Registered[Any]]:
        """All records of one plugin; raises if any of them is not what the hook asks for."""
        self.manager.register(plugin, name=f"{origin.package}: {origin.entry_point}")
        others = [known for known in self.manager.get_plugins() if known is not plugin]
        records: list[Registered[Any]] = []
        hooks = 0
        for kind, check in _CHECKS.items():
            caller = self.manager.subset_hook_caller(f"physdiffuser_{kind}s", remove_plugins=others)
            hooks += len(caller.get_hookimpls())
            for result in caller():
                for spec in result if isinstance(result, list | tuple) else (result,):
                    check(spec)
                    records.append(
                        Registered(
                            spec.name, kind, origin.package, origin.version, origin.entry_point, spec, spec
                        )
                    )
        if not hooks:
            raise TypeError("it implements no hook; is each function marked with @hookimpl?")
        return records

    def settle(self) -> None:
        """Fill the tables, once all names are known; a name offered twice is nobody's."""
        for (kind, name), records in self.offered.items():
            own = [record for record in records if record.package == BUILT_IN_PACKAGE]
            chosen = own or records
            if len(records) > 1:
                packages = " and ".join(f"{record.package} ({record.entry_point})" for record in records)
                kept = f"; {BUILT_IN_PACKAGE}'s own is used" if own else "; neither is used"
                for record in records:
                    if record not in own:
                        origin = _Origin(record.package, record.version, record.entry_point)
                        self.loaded.failures.append(
                            origin.failed(f"the {kind} {name!r} is provided by {packages}{kept}", (name,))
                        )
                if not own:
                    continue
            self._accept(chosen[0])

    def _accept(self, record: Registered[Any]) -> None:
        from physdiffuser.plugin_guard import GuardedGenerator

        own = record.package == BUILT_IN_PACKAGE
        match record.kind:
            case "attention":
                self.loaded.attentions[record.name] = record
            case "generator":
                if not own:
                    build = partial(GuardedGenerator, record.package, record.spec)
                    record = replace(record, spec=replace(record.spec, build=build))
                self.loaded.generators[record.name] = record
            case _:
                self._accept_operator(record)

    def _accept_operator(self, record: Registered[Any]) -> None:
        from physdiffuser.expressions.operators import OPERATORS, register
        from physdiffuser.plugin_guard import GuardedOperator

        guard = GuardedOperator(record.package, record.spec)
        spec = replace(record.spec, evaluate=guard.evaluate, derivatives=guard.derivatives)
        try:
            if record.name not in _REGISTERED_OPERATORS:
                register(spec)
                _REGISTERED_OPERATORS.add(record.name)
        except ValueError as error:
            origin = _Origin(record.package, record.version, record.entry_point)
            self.loaded.failures.append(origin.failed(str(error), (record.name,)))
        else:
            self.loaded.operators[record.name] = replace(record, spec=OPERATORS[record.name])


_REGISTERED_OPERATORS: set[str] = set()


def _check_common(spec: Any, expected: type[Any]) -> None:
    if not isinstance(spec, expected):
        raise TypeError(f"the hook must return {expected.__name__}, not {type(spec).__name__}")
    if not isinstance(spec.name, str) or not _NAME.fullmatch(spec.name):
        raise ValueError(
            f"the name {str(spec.name)[:40]!a} is no letter followed by at most 39 letters, digits, - or _"
        )


def _check_attention(spec: Any) -> None:
    from physdiffuser.specs import AttentionSpec

    _check_common(spec, AttentionSpec)
    _check_build(spec)


def _check_generator(spec: Any) -> None:
    from physdiffuser.specs import GeneratorSpec

    _check_common(spec, GeneratorSpec)
    _check_build(spec)


def _check_build(spec: Any) -> None:
    if not callable(spec.build):
        raise TypeError(f"{spec.name!r}: build must be callable, not {type(spec.build).__name__}")
    if not isinstance(spec.options, Mapping) or not all(isinstance(name, str) for name in spec.options):
        raise TypeError(f"{spec.name!r}: options must map names to default values")


def _check_operator(spec: Any) -> None:
    from physdiffuser.specs import OperatorSpec
    from physdiffuser.testing import check_operator

    _check_common(spec, OperatorSpec)
    check_operator(spec)


_CHECKS = {"attention": _check_attention, "generator": _check_generator, "operator": _check_operator}
