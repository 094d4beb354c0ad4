"""Plugin packages that do harm, as a stranger's would be installed: a module and its metadata.

Each entry is the source of a module. `install` writes it with a `dist-info` folder into a directory that
goes on the path, which is all that pip does.
"""

from __future__ import annotations

from pathlib import Path

_GENERATOR = """
from physdiffuser.expressions import Number, Variable
from physdiffuser.hookspecs import hookimpl
from physdiffuser.search.candidate import Candidate
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
