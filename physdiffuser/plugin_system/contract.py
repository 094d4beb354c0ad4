"""What all contract checks of plugins share: the error they raise, and calls with a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from physdiffuser.plugin_system.calls import PluginWorker

T = TypeVar("T")

CALL_LIMIT = 30.0
"""Seconds for each call of the plugin."""

CALLS_IN_ALL = 10
"""All calls of one check together may take so many times as long as one."""


class ContractError(AssertionError):
    """A plugin does not do what the extension point asks for."""


def ensure(condition: bool, message: str) -> None:
    """Raise a `ContractError` with the message unless the condition holds."""
    if not condition:
        raise ContractError(message)


class Calls:
    """The calls of one check, and how long each takes.

    Parameters
    ----------
    limit
        Seconds for each call.
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._name = "it"
        self._started = time.monotonic()

    def __call__(self, name: str, function: Callable[..., T], *arguments: Any, **options: Any) -> T:
        """Call a function of the plugin, under a name for the message."""
        self._name, self._started = name, time.monotonic()
        return function(*arguments, **options)

    def run(self, check: Callable[[Calls], list[str]]) -> list[str]:
        """Run a check in a thread of its own, and give it up once a call exceeds the limit."""
        worker = PluginWorker()
        too_long = ""

        def give_up(waited: float) -> bool:
            nonlocal too_long
            if time.monotonic() - self._started >= self.limit:
                too_long = f"{self._name} does not return within {self.limit:g} s"
            elif waited >= CALLS_IN_ALL * self.limit:
                too_long = f"the check does not end within {CALLS_IN_ALL * self.limit:g} s"
            return bool(too_long)

        try:
            return worker.call(lambda: check(self), give_up)
        except TimeoutError:
            raise ContractError(too_long) from None
        finally:
            worker.close()
