"""Plugin packages that do harm, as a stranger's would be installed: a module and its metadata.

Each entry is the source of a module. `install` writes it with a `dist-info` folder into a directory that
goes on the path, which is all that pip does.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_GENERATOR = """
from physdiffuser.expressions import Number, Variable
from physdiffuser.hookspecs import hookimpl
from physdiffuser.core.candidate import Candidate
from physdiffuser.specs import GeneratorSpec

class Bad:
    name = "bad"
    def propose(self, problem, archive, budget):
{body}

@hookimpl
def physdiffuser_generators():
    return GeneratorSpec("bad", Bad)
"""

_OPERATOR = """
import numpy as np
from physdiffuser.hookspecs import hookimpl
from physdiffuser.specs import OperatorSpec

calls = 0
def evaluate(x):
{body}
def derivative(x, value):
    return np.ones_like(x)
def to_sympy(x):
    return x

@hookimpl
def physdiffuser_operators():
    return OperatorSpec("bad", 1, 2, evaluate, (derivative,), to_sympy)
"""


def _generator(*lines: str) -> str:
    return _GENERATOR.format(body="\n".join(f"        {line}" for line in lines))


def _operator(*lines: str) -> str:
    return _OPERATOR.format(body="\n".join(f"    {line}" for line in lines))


FAILS_TO_LOAD = {
    "import_error": "import a_module_that_does_not_exist",
    "syntax_error": "def f(:",
    "exits_on_import": "import sys; sys.exit('goodbye')",
    "interrupts_on_import": "raise KeyboardInterrupt",
    "sleeps_on_import": "import time; time.sleep(600)",
    "loops_on_import": "while True: pass",
    "hook_raises": """
from physdiffuser.hookspecs import hookimpl
@hookimpl
def physdiffuser_generators():
    raise RuntimeError("not today")
""",
    "hook_returns_the_wrong_type": """
from physdiffuser.hookspecs import hookimpl
@hookimpl
def physdiffuser_generators():
    return [{"name": "bad"}]
""",
    "hook_takes_unknown_arguments": """
from physdiffuser.hookspecs import hookimpl
@hookimpl
def physdiffuser_generators(everything):
    return []
""",
    "takes_a_built_in_name": """
from physdiffuser.hookspecs import hookimpl
from physdiffuser.specs import GeneratorSpec
@hookimpl
def physdiffuser_generators():
    return GeneratorSpec("enumeration", dict)
""",
    "operator_is_not_elementwise": _operator("return np.full_like(x, x.sum())"),
    "operator_takes_a_built_in_name": _operator("return x").replace('"bad"', '"sqrt"'),
    "no_hook": "answer = 42",
}
"""Fails while it is loaded: reported, and everything else works."""

GENERATOR_FAULTS = {
    "raises": _generator("raise ValueError('boom')", "yield"),
    "exits": _generator("raise SystemExit(0)", "yield"),
    "sleeps": _generator("import time; time.sleep(600)", "yield"),
    "loops": _generator("while True: pass", "yield"),
    "yields_garbage": _generator("for i in range(100): yield 'x1 + x2'"),
    "yields_nan": _generator("for i in range(100): yield Candidate(Number(float('nan')), 'bad')"),
    "yields_unknown_columns": _generator("for i in range(100): yield Candidate(Variable(99), 'bad')"),
    "changes_its_input": _generator("problem.inputs[:] = 0", "yield Candidate(Variable(0), 'bad')"),
}
"""Loads, and then misbehaves when it is asked to propose."""

OPERATOR_FAULTS = {
    # Well behaved while the contract is checked, and not afterwards.
    "raises_later": _operator(
        "global calls; calls += 1", "if calls > 50: raise ValueError('boom')", "return x + 0"
    ),
    "wrong_shape_later": _operator(
        "global calls; calls += 1", "return x + 0 if calls <= 50 else np.zeros(3)"
    ),
    "nan_later": _operator("global calls; calls += 1", "return x + 0 if calls <= 50 else x * np.nan"),
}

NOISY = "print('{}')\n" + _generator("print('noise')", "yield Candidate(Variable(0), 'bad')")
"""Works, and writes to stdout, which belongs to the result."""


def install(folder: Path, name: str, source: str | None, entry_points: str | None = None) -> None:
    """Write a package and its metadata into a folder of the path.

    Parameters
    ----------
    folder
        A directory that is, or will be, on `sys.path`.
    name
        Name of the module; the distribution is called the same with hyphens.
    source
        The module; None for a distribution whose module is missing.
    entry_points
        Its entry_points.txt, when not the ordinary one.
    """
    if source is not None:
        (folder / f"{name}.py").write_text(source)
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir(parents=True)
    distribution = name.replace("_", "-")
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(entry_points or f"[physdiffuser]\n{name} = {name}\n")


# The kinds that `tools/stress_plugins.py` runs as whole programs.

_ENDLESS = "while True: yield Candidate(Variable(0), 'bad')"
_WRITES = """
import ctypes, os, subprocess, sys
def write():
    print("{printed")
    sys.__stdout__.write("{original")
    sys.__stdout__.flush()
    os.write(1, b"{written\\n")
    subprocess.run([sys.executable, "-c", "print('{started')"])
    ctypes.CDLL(None).printf(b"{buffered in C\\n")
write()
"""


@dataclass(frozen=True)
class Kind:
    """A kind of hostile plugin, and what must be seen of it.

    Attributes
    ----------
    source
        The module.
    stage
        When it misbehaves: "load", "generator" or "operator".
    reported
        Whether `solve` must name its package in a warning.
    check
        Exit code of `plugins check`.
    """

    source: str
    stage: str
    reported: bool = True
    check: int = 6


def _on_load(name: str) -> Kind:
    return Kind(FAILS_TO_LOAD[name], "load")


def _on_propose(*lines: str, before: str = "", reported: bool = True, check: int = 6) -> Kind:
    return Kind(before + _generator(*lines), "generator", reported, check)


KINDS = {
    "import_error": _on_load("import_error"),
    "exits_on_import": _on_load("exits_on_import"),
    "interrupts_on_import": _on_load("interrupts_on_import"),
    "sleeps_on_import": _on_load("sleeps_on_import"),
    "loops_on_import": _on_load("loops_on_import"),
    "still_imports_torch": Kind("import torch\nimport time; time.sleep(600)", "load"),
    # What an interpreter does that shuts down while a thread is inside native code, at a known moment.
    "crashes_at_exit": Kind(
        "import atexit, os, signal, time\n"
        "atexit.register(lambda: os.kill(os.getpid(), signal.SIGSEGV))\ntime.sleep(600)",
        "load",
    ),
    "error_without_text": Kind(
        "class Bad(Exception):\n    def __str__(self): raise RuntimeError\nraise Bad", "load"
    ),
    "takes_a_built_in_name": _on_load("takes_a_built_in_name"),
    "endless_valid": _on_propose(_ENDLESS),
    "endless_until_cancelled": _on_propose(_ENDLESS.replace("True", "not budget.cancelled()")),
    "endless_malformed": _on_propose("while True: yield Candidate(Variable(99), 'bad')"),
    "wrong_types": _on_propose(
        "while True:",
        "    yield 'x1 + x2'",
        "    yield Candidate(Number(float('nan')), 'bad')",
        "    yield Candidate(Number(10**400), 'bad')",
        "    yield Candidate(Variable(0), None)",
        "    yield Candidate(Variable(0), 'bad', 'x' * 10)",
    ),
    "changes_its_input": _on_propose("problem.inputs[:] = 0", "yield Candidate(Variable(0), 'bad')"),
    "changes_the_archive": _on_propose("archive._best.clear()", "yield Candidate(Variable(0), 'bad')"),
    "raises_at_random": _on_propose(
        "import random",
        "while budget.spend():",
        "    if random.random() < 0.5: raise ValueError('boom')",
        "    yield Candidate(Variable(0), 'bad')",
    ),
    "interrupts": _on_propose("raise KeyboardInterrupt", "yield"),
    "sleeps": _on_propose("import time; time.sleep(600)", "yield"),
    "sleeps_when_closed": _on_propose(
        "import time", "try:", f"    {_ENDLESS}", "finally:", "    time.sleep(600)"
    ),
    "huge_expressions": _on_propose(
        "from physdiffuser.expressions import Apply",
        "shared = deep = Variable(0)",
        "for _ in range(60): shared = Apply('add', (shared, shared))",
        "for _ in range(700): deep = Apply('sin', (deep,))",
        "while True:",
        "    yield Candidate(shared, 'bad')",
        "    yield Candidate(deep, 'bad')",
    ),
    "writes_to_stdout": _on_propose(
        "write()", "yield Candidate(Variable(0), 'bad')", before=_WRITES, reported=False, check=0
    ),
    "threads_that_go_on": _on_propose(
        "yield Candidate(Variable(0), 'bad')",
        before="import os, threading, time\n"
        "def run():\n    while True: os.write(1, b'{noise'); print('{noise'); time.sleep(0.01)\n"
        "threading.Thread(target=run).start()\n",
        reported=False,
        check=0,
    ),
    # Well behaved on the rows of the check, which are 64, and not on those of a table.
    "operator_with_wrong_shapes": Kind(
        _operator("return x + 0.0 if np.size(x) in (1, 64) else np.zeros(3)"), "operator", check=0
    ),
    "operator_interrupts": Kind(
        _operator("if np.size(x) not in (1, 64): raise KeyboardInterrupt", "return x + 0.0"),
        "operator",
        check=0,
    ),
}
"""By name. One that calls `os._exit` is none of them: nothing inside the process can prevent that."""
