"""A system of equations as source code: Python for `solve_ivp`, torch, C, Julia, sympy and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from physdiffuser.dynamics.report.solution import DynamicsSolution
from physdiffuser.errors import UsageError
from physdiffuser.expressions import Expression, to_text
from physdiffuser.expressions.tree import free_constants
from physdiffuser.io.display import visible
from physdiffuser.report.export.source_code import (
    JULIA,
    NUMPY,
    TORCH,
    C,
    Dialect,
    Writer,
    c_identifiers,
    named_constants,
    python_identifiers,
)

_ORIGIN = re.compile(r"[^A-Za-z0-9.+_ -]")


def export_system(solution: DynamicsSolution, format_name: str) -> str:
    """The equations in one of the `FORMATS`.

    Raises
    ------
    UsageError
        If the format is unknown, or an operator of an equation has no form in it.
    """
    if format_name not in FORMATS:
        raise UsageError(f"unknown export format '{visible(format_name)}'; known are {' '.join(FORMATS)}")
    return FORMATS[format_name](solution)


class _Names:
    """What the code calls the coordinates, inputs and the time, and the head of the file."""

    def __init__(
        self, solution: DynamicsSolution, identifiers: Callable[..., list[str]], taken: Sequence[str]
    ) -> None:
        self.every = identifiers(solution.names, taken=taken)
        count, inputs = len(solution.phase), len(solution.inputs)
        self.phase, self.inputs = self.every[:count], self.every[count : count + inputs]
        self.time = self.every[-1]
        self.solution = solution

    def head(self, sign: str) -> list[str]:
        """Comment lines: the equations, and which name is which column."""
        solution = self.solution
        maker = _ORIGIN.sub("", f"physdiffuser {solution.version}".strip())[:60]
        lines = [f"Equations found by {maker}:"]
        lines += [
            f"    {visible(one.target, 200)} = {visible(to_text(expression, solution.names), 20_000)}"
            for one, expression in zip(solution.equations, solution.expressions, strict=True)
        ]
        lines += [
            f"{name} is the column '{visible(column.name, 200)}'"
            for name, column in zip(self.every, solution.columns, strict=True)
            if name != column.name and column not in solution.derivatives
        ]
        return [f"{sign} {line}".encode("ascii", "backslashreplace").decode("ascii") for line in lines]

    def written(self, dialect: Dialect, expressions: Sequence[Expression], pi: str) -> list[str]:
        """The expressions in a language; known constants stand as numbers."""
        texts = []
        for expression in expressions:
            symbols = {n: f"({value!r})" for n, value in named_constants(expression).items()} | {"pi": pi}
            texts.append(Writer(dialect, self.every, symbols).write(expression))
        return texts


def python_text(solution: DynamicsSolution) -> str:
    """A numpy right-hand side for `scipy.integrate.solve_ivp`."""
    names = _Names(solution, python_identifiers, ["rates", "state", "inputs"])
    texts = names.written(NUMPY, solution.flow, "np.pi")
    driven = ", inputs" if names.inputs else ""
    lines = ["import numpy as np", "", "", f"def rates({names.time}, state{driven}):"]
    lines += ['    """Rates of change of the state, for scipy.integrate.solve_ivp."""']
    lines += [f"    {line}" for line in names.head("#")]
    lines += ["    # inputs: a function of the time"] if names.inputs else []
    lines += [f"    {_unpacked(names.phase)} = state"]
    lines += [f"    {_unpacked(names.inputs)} = inputs({names.time})"] if names.inputs else []
    return "\n".join([*lines, f"    return np.array([{', '.join(texts)}], dtype=float)"]) + "\n"


def _unpacked(names: Sequence[str]) -> str:
    return f"{', '.join(names)}," if len(names) == 1 else ", ".join(names)


def torch_text(solution: DynamicsSolution) -> str:
    """A torch module whose parameters are the fitted constants."""
    names = _Names(solution, python_identifiers, ["state", "inputs"])
    values: list[float] = []
    texts = []
    for expression in solution.flow:
        skeleton, own = free_constants(expression)
        parameters = [f"self.c{len(values) + place + 1}" for place in range(len(own))]
        values += own
        symbols = {n: f"({value!r})" for n, value in named_constants(expression).items()} | {"pi": "math.pi"}
        texts.append(Writer(TORCH, names.every, symbols, parameters).write(skeleton))
    driven = ", inputs" if names.inputs else ""
    lines = ["import math", "", "import torch", "", "", "class Rates(torch.nn.Module):"]
    lines += [f"    {line}" for line in names.head("#")]
    lines += ["", "    def __init__(self):", "        super().__init__()"]
    lines += [
        f"        self.c{place} = torch.nn.Parameter(torch.tensor({value!r}, dtype=torch.float64))"
        for place, value in enumerate(values, start=1)
    ]
    lines += ["", f"    def forward(self, {names.time}, state{driven}):"]
    lines += [f"        {_unpacked(names.phase)} = state.unbind(-1)"]
    lines += [f"        {_unpacked(names.inputs)} = inputs.unbind(-1)"] if names.inputs else []
    # A rate without a state is a number, which broadcasts as a tensor.
    lines += [f"        rates = [{', '.join(texts)}]"]
    lines += [
        "        return torch.stack([rate + torch.zeros_like(state[..., 0]) for rate in rates], dim=-1)"
    ]
    text = "\n".join(lines) + "\n"
    return text if "math." in text.split("class Rates")[1] else text.replace("import math\n\n", "", 1)


def c_text(solution: DynamicsSolution) -> str:
    """A C99 function that writes the rates of change."""
    names = _Names(solution, c_identifiers, ["rates", "state", "inputs", "rate"])
    texts = names.written(C, solution.flow, "3.14159265358979323846")
    signature = f"void rates(double {names.time}, const double *state, const double *inputs, double *rate)"
    lines = [*names.head("//"), "#include <math.h>", "", f"{signature};", "", signature, "{"]
    every = [(name, f"state[{place}]") for place, name in enumerate(names.phase)]
    every += [(name, f"inputs[{place}]") for place, name in enumerate(names.inputs)]
    lines += [f"    const double {name} = {source}; (void){name};" for name, source in every]
    lines += [f"    (void){names.time}; (void)inputs;"]
    lines += [f"    rate[{place}] = {text};" for place, text in enumerate(texts)]
    return "\n".join([*lines, "}"]) + "\n"


def julia_text(solution: DynamicsSolution) -> str:
    """A system for ModelingToolkit (Julia)."""
    names = _Names(solution, c_identifiers, ["D", "t", "system", "equations"])
    states = names.phase[: len(solution.states)]
    # The time is ModelingToolkit's own, and a derivative is the operator D of its state.
    names.every = [*states, *(f"D({state})" for state in states)][: len(names.phase)] + names.inputs + ["t"]
    head = names.head("#")
    texts = names.written(JULIA, solution.expressions, "pi")
    left = "D(D({}))" if solution.order == 2 else "D({})"
    rows = [f"    {left.format(state)} ~ {text}," for state, text in zip(states, texts, strict=True)]
    declared = " ".join(f"{name}(t)" for name in (*states, *names.inputs))
    lines = [
        *head,
        "using ModelingToolkit",
        "using ModelingToolkit: t_nounits as t, D_nounits as D",
        "",
        f"@variables {declared}",
        "equations = [",
        *rows,
        "]",
        "@named system = ODESystem(equations, t)",
    ]
    return "\n".join(lines) + "\n"


def sympy_text(solution: DynamicsSolution) -> str:
    """A Python script with one sympy equation for each state."""
    from physdiffuser.report.export.source_code import SYMPY

    names = _Names(solution, python_identifiers, ["equations"])
    count = len(solution.states)
    texts = names.written(SYMPY, solution.expressions, "sympy.pi")
    time, states = names.time, names.phase[:count]
    lines = [*names.head("#"), "import sympy", "", f'{time} = sympy.Symbol("{time}", real=True)']
    functions = [(name, name) for name in (*states, *names.inputs)]
    lines += [f'{name} = sympy.Function("{text}", real=True)({time})' for name, text in functions]
    lines += [
        f"{name} = sympy.Derivative({state}, {time})"
        for name, state in zip(names.phase[count:], states, strict=False)
    ]
    lines += ["equations = ["]
    lines += [
        f"    sympy.Eq(sympy.Derivative({state}, ({time}, {solution.order})), {text}),"
        for state, text in zip(states, texts, strict=True)
    ]
    return "\n".join([*lines, "]"]) + "\n"


FORMATS: dict[str, Callable[[DynamicsSolution], str]] = {
    "python": python_text,
    "numpy": python_text,
    "c": c_text,
    "torch": torch_text,
    "julia": julia_text,
    "sympy": sympy_text,
    "latex": lambda solution: solution.latex() + "\n",
}
"""Export formats of systems, each a function from a solution to text."""
