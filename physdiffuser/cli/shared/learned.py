"""Options of some generators: refused where nothing would use them, never silently ignored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from physdiffuser.errors import UsageError


def check_learned_options(search: Mapping[str, Any]) -> None:
    """Check `--attention` and `--device` against the generators of the run.

    Parameters
    ----------
    search
        Arguments of `physdiffuser.pipeline.solve`.

    Raises
    ------
    PluginError
        If no attention variant or generator has the name asked for.
    UsageError
        If no generator of the run takes the option.
    """
    given = {
        option: search[option]
        for option, default in (("attention", None), ("device", "auto"))
        if search[option] != default
    }
    if not given:
        return
    from physdiffuser.generation.builtin import DEFAULT_GENERATORS
    from physdiffuser.plugin_system.manager import load_plugins

    loaded = load_plugins(search["plugins"], time=search.get("time") or float("inf"))
    if "attention" in given:
        loaded.attention(given["attention"])
    names = search["generators"] or DEFAULT_GENERATORS
    taken = {option for name in names for option in loaded.generator(name).options}
    for option in given:
        # "cpu" is where everything else runs anyway.
        if option not in taken and given[option] != "cpu":
            takers = [name for name, entry in loaded.generators.items() if option in entry.spec.options]
            known = f" Name one with --generators, such as {takers[0]}." if takers else ""
            raise UsageError(
                f"--{option} is for the generators {', '.join(takers)}, and none of this run's takes it: "
                f"{', '.join(names)}.{known} Or leave out --{option}."
            )
