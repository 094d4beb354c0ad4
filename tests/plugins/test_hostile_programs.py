"""Whole programs with hostile plugins: exit code, stdout, time. A seeded sample of the stress tool."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hostile_plugins import KINDS, install

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = sorted(np.random.default_rng(20).choice(sorted(KINDS), 5, replace=False).tolist())


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("stress_plugins", ROOT / "tools" / "stress_plugins.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["stress_plugins"] = module  # its dataclasses look there
    spec.loader.exec_module(module)
    return module


def program(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), str(ROOT), str(ROOT / "plugins")])
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"} | variables,
        cwd=folder,
    )


@pytest.mark.parametrize("name", SAMPLE)
def test_a_hostile_plugin_costs_a_warning(name: str, tool: ModuleType) -> None:
    outcome = tool.Outcome()
    tool.stress(name, np.random.default_rng(1), slack=60.0, outcome=outcome)
    assert outcome.faults == []
    assert outcome.runs == 2


@pytest.mark.parametrize("command", [("solve", "table.csv", "--json"), ("plugins", "list")])
def test_what_a_plugin_writes_to_descriptor_1_is_not_in_the_output(
    command: tuple[str, ...], tool: ModuleType, tmp_path: Path
) -> None:
    install(tmp_path, "writes_to_stdout", KINDS["writes_to_stdout"].source)
    tool.write_table(tmp_path, "m*v", np.random.default_rng(0))
    options = ("--generators", "bad,evolution", "--time", "10") if command[0] == "solve" else ()
    finished = program(tmp_path, "-m", "physdiffuser", *command, *options)
    assert finished.returncode == 0, finished.stderr
    for text in ("{printed", "{original", "{written", "{started", "{buffered in C"):
        assert text in finished.stderr
        assert text not in finished.stdout
    assert finished.stdout.startswith("{" if command[0] == "solve" else "kind")


@pytest.mark.parametrize("name", ["crashes_at_exit", "threads_that_go_on"])
def test_the_exit_code_holds_while_a_thread_of_a_plugin_runs(name: str, tmp_path: Path) -> None:
    install(tmp_path, name, KINDS[name].source)
    finished = program(tmp_path, "-m", "physdiffuser", "plugins", "list", PHYSDIFFUSER_PLUGIN_LIMIT="0.5")
    assert finished.returncode == 0, finished.stderr
    assert "enumeration" in finished.stdout
    assert "noise" not in finished.stdout
    missing = program(tmp_path, "-m", "physdiffuser", "plugins", "check", "nothing-like-it")
    assert missing.returncode == 6


PRINTS_WHILE_CALLED = """
import os
import threading
import time

from physdiffuser.plugin_system.calls import PluginWorker


class Slow:
    '''A stdout that gives other threads their turn in the middle of every `print`.'''

    def write(self, text):
        time.sleep(0)

    def flush(self):
        pass


def prints():
    while True:
        print("noise")


import sys

sys.stdout = Slow()
for _ in range(4):
    threading.Thread(target=prints, daemon=True).start()
for _ in range(3000):
    worker = PluginWorker()
    worker.call(lambda: time.sleep(0), lambda waited: waited >= 60.0)
    worker.close()
os._exit(0)
"""


def test_a_thread_that_prints_while_stdout_is_diverted_does_not_crash(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(PRINTS_WHILE_CALLED)
    finished = program(tmp_path, str(script))
    assert finished.returncode == 0, finished.stderr[-500:]


COMMAND = """
import os
import click
from physdiffuser.hookspecs import hookimpl
os.write(1, b"while importing\\n")
@click.command()
def survey():
    click.echo("the survey")
    os.write(1, b"more of it\\n")
@hookimpl
def physdiffuser_commands(cli):
    cli.add_command(survey)
"""


def test_a_command_of_a_plugin_owns_stdout_once_it_runs(tmp_path: Path) -> None:
    install(tmp_path, "surveying", COMMAND, "[physdiffuser.commands]\nsurvey = surveying\n")
    finished = program(tmp_path, "-m", "physdiffuser", "survey")
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == "the survey\nmore of it\n"
    assert "while importing" in finished.stderr
    described = program(tmp_path, "-m", "physdiffuser", "survey", "--help")
    assert described.stdout.startswith("Usage: physdiffuser survey")


IN_PROCESS = """
import ctypes, os, sys
from physdiffuser.cli.process.messages import output
from physdiffuser.cli.process.stdout import reserved_stdout

before = sys.stdout
print("first")
with reserved_stdout():
    print("print")
    ctypes.CDLL(None).printf(b"printf\\n")
    os.write(1, b"write\\n")
    output("output\\n")
    with reserved_stdout():
        output("nested\\n")
assert sys.stdout is before
print("restored", flush=True)
os.write(1, b"last\\n")
"""


def test_stdout_is_put_back_in_a_program_that_goes_on(tmp_path: Path) -> None:
    finished = program(tmp_path, "-c", IN_PROCESS)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.split() == ["first", "output", "nested", "restored", "last"]
    assert sorted(finished.stderr.split()) == ["print", "printf", "write"]


def test_every_command_of_the_program_reserves_stdout() -> None:
    import click

    from physdiffuser.cli.app import BUILT_IN, cli
    from physdiffuser.plugin_system.manager import COMMAND_GROUP, entry_points

    def callbacks(command: click.Command) -> list[object]:
        if isinstance(command, click.Group):
            return [found for inner in command.commands.values() for found in callbacks(inner)]
        return [command.callback]

    own = [entry.name for origin, entry in entry_points(COMMAND_GROUP) if origin.built_in]
    commands = [cli.get_command(click.Context(cli), name) for name in (*BUILT_IN, *own)]
    found = [callback for command in commands if command is not None for callback in callbacks(command)]
    assert len(found) >= len(BUILT_IN) + 3
    assert all(hasattr(callback, "__wrapped__") for callback in found)
