"""A found formula as text in other languages: Python, C, torch, sympy, LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from physdiffuser.core.solution import Equation, Solution
from physdiffuser.errors import UsageError
from physdiffuser.expressions import Expression, to_text
from physdiffuser.expressions.definitions import definitions_in, expanded
from physdiffuser.expressions.printing.format import Digits
from physdiffuser.expressions.printing.latex import to_latex
from physdiffuser.expressions.tree import free_constants, variables
from physdiffuser.io.display import visible
from physdiffuser.report.export.source_code import (
    NUMPY,
    SYMPY,
    TORCH,
    C,
    Writer,
    c_identifiers,
    named_constants,
    python_identifiers,
)
from physdiffuser.report.text.digits import shown_digits
from physdiffuser.report.text.group_table import group_lines
from physdiffuser.report.text.style import Style


@dataclass(frozen=True)
class Formula:
    """What an export needs to know.

    Attributes
    ----------
    expression
        The tree.
    names
        Aliases of all input columns, in order.
    columns
        Their names in the table.
    target
        Name of the target in the table.
    origin
        What made it, for the head of a file.
    digits
        Of its fitted constants where people read it; code has them all.
    groups
        For a table with groups: lines of the table of their constants, which are arguments of the code.
    """

    expression: Expression
    names: tuple[str, ...]
    columns: tuple[str, ...]
    target: str
    origin: str
    digits: Digits | None = None
    groups: tuple[str, ...] = ()

    @property
    def maker(self) -> str:
        """`origin` without what could end a comment or a string: it may come from a file."""
        return re.sub(r"[^A-Za-z0-9.+_ -]", "", self.origin)[:60]

    @property
    def used(self) -> list[int]:
        """Positions of the columns that occur."""
        return sorted(variables(self.expression))

    def head(self, sign: str, arguments: Sequence[str], escape: Callable[[str], str] = visible) -> list[str]:
        """Comment lines: the formula, where it is from, and which argument is which column."""
        lines = [
            f"'{escape(self.target)}' as found by {self.maker}:",
            f"    {escape(to_text(self.expression, self.names, self.digits))}",
        ]
        for position, argument in zip(self.used, arguments, strict=True):
            if argument != self.columns[position]:
                lines.append(f"{argument} is the column '{escape(self.columns[position])}'")
        lines += [
            f"with {escape(one.head)} = {escape(one.text)}" for one in definitions_in([self.expression])
        ]
        lines += [escape(line) for line in self.groups]
        return [f"{sign} {line}" for line in lines]


def formula_of(solution: Solution, equation: Equation) -> Formula:
    """The formula of one row of a result, for `export`."""
    return Formula(
        expression=equation.expression,
        names=solution.names,
        columns=solution.columns,
        target=solution.target,
        origin=f"physdiffuser {solution.version}".strip(),
        digits=shown_digits(equation),
        groups=tuple(line.replace("±", "+-") for line in group_lines(solution, equation, Style())),
    )


def _long(text: str) -> str:
    return visible(text, 20_000)


def _ascii(text: str) -> str:
    return _long(text).encode("ascii", "backslashreplace").decode("ascii")


def python_function(formula: Formula) -> str:
    """The source of a numpy function of the columns that occur."""
    names = [formula.names[index] for index in formula.used]
    function, *arguments = python_identifiers([f"predict_{_identifier_part(formula.target)}", *names])
    constants = {name: value for name, value in named_constants(formula.expression).items() if name != "pi"}
    written = python_identifiers(constants, taken=[function, *arguments])
    symbols = dict(zip(constants, written, strict=True)) | {"pi": "np.pi"}
    body = Writer(NUMPY, _spread(formula, arguments), symbols).write(formula.expression)
    lines = [f"def {function}({', '.join(arguments)}):"]
    lines += [f"    # {line[2:]}" for line in formula.head("#", arguments, _long)]
    lines += [f"    {name} = {value!r}" for name, value in zip(written, constants.values(), strict=True)]
    lines += [f"    {argument} = np.asarray({argument}, dtype=float)" for argument in arguments]
    lines += [
        '    with np.errstate(all="ignore"):  # nan or inf outside the domain',
        f"        return {body}",
    ]
    return "\n".join(lines) + "\n"


def numpy_function(formula: Formula) -> str:
    """The function with the import that it needs, to be pasted anywhere."""
    return f"import numpy as np\n\n\n{python_function(formula)}"


def python_file(formula: Formula) -> str:
    """A Python module that needs numpy only."""
    head = f'"""Law found by {formula.maker}; a function of numpy arrays that broadcast."""'
    return f"{head}\n\nimport numpy as np\n\n\n{python_function(formula)}"


def c_file(formula: Formula) -> str:
    """A C99 source file with one function of the columns that occur."""
    names = [formula.names[index] for index in formula.used]
    function, *arguments = c_identifiers([f"predict_{_identifier_part(formula.target)}", *names])
    constants = named_constants(formula.expression)
    written = c_identifiers(constants, taken=[function, *arguments])
    body = Writer(C, _spread(formula, arguments), dict(zip(constants, written, strict=True)))
    signature = ", ".join(f"double {argument}" for argument in arguments) or "void"
    lines = formula.head("//", arguments, _ascii)
    lines += [
        "#include <math.h>",
        "",
        f"double {function}({signature});",
        "",
        f"double {function}({signature})",
        "{",
    ]
    lines += [
        f"    const double {name} = {value!r};"
        for name, value in zip(written, constants.values(), strict=True)
    ]
    lines += [f"    return {body.write(formula.expression)};", "}"]
    return "\n".join(lines) + "\n"


def torch_file(formula: Formula) -> str:
    """A Python module with a `torch.nn.Module` whose parameters are the fitted constants."""
    skeleton, values = free_constants(formula.expression)
    arguments = python_identifiers([formula.names[index] for index in formula.used])
    constants = {name: value for name, value in named_constants(formula.expression).items() if name != "pi"}
    written = python_identifiers(constants, taken=arguments)
    symbols = dict(zip(constants, written, strict=True)) | {"pi": "math.pi"}
    parameters = [f"self.c{index + 1}" for index in range(len(values))]
    body = Writer(TORCH, _spread(formula, arguments), symbols, parameters).write(skeleton)
    if not arguments and not values:
        body = f"torch.tensor({body}, dtype=torch.float64)"
    lines = [
        f'"""Law found by {formula.maker}, as a torch module."""',
        "",
        "import math",
        "",
        "import torch",
        "",
        "",
        "class Law(torch.nn.Module):",
        *(f"    {line}" for line in formula.head("#", arguments, _long)),
        "",
        "    def __init__(self):",
        "        super().__init__()",
    ]
    lines += [
        f"        {name} = torch.nn.Parameter(torch.tensor({value!r}, dtype=torch.float64))"
        for name, value in zip(parameters, values, strict=True)
    ]
    lines += ["", f"    def forward({', '.join(['self', *arguments])}):"]
    lines += [f"        {name} = {value!r}" for name, value in zip(written, constants.values(), strict=True)]
    lines += [f"        return {body}"]
    text = "\n".join(lines) + "\n"
    return text if "math." in body else text.replace("import math\n\n", "", 1)


def sympy_file(formula: Formula) -> str:
    """A Python script that builds the formula with sympy, exact numbers exact."""
    constants = [name for name in named_constants(formula.expression) if name != "pi"]
    values = named_constants(formula.expression)
    names = [formula.names[index] for index in formula.used]
    written = python_identifiers([*names, *constants], taken=["expression"])
    arguments = written[: len(names)]
    symbols = dict(zip(constants, written[len(names) :], strict=True)) | {"pi": "sympy.pi"}
    body = Writer(SYMPY, _spread(formula, arguments), symbols).write(formula.expression)
    lines = [*formula.head("#", arguments, _long), "import sympy", ""]
    lines += [
        f'{argument} = sympy.Symbol("{name}", real=True)'
        for argument, name in zip(arguments, names, strict=True)
    ]
    lines += [
        f'{symbols[name]} = sympy.Symbol("{name}", real=True)  # {values[name]!r}' for name in constants
    ]
    lines += [
        f"expression = sympy.sympify({body})" if not names and not constants else f"expression = {body}"
    ]
    return "\n".join(lines) + "\n"


def latex_text(formula: Formula) -> str:
    """The formula in LaTeX, one line."""
    return to_latex(expanded(formula.expression), formula.names, formula.digits) + "\n"


FORMATS: dict[str, Callable[[Formula], str]] = {
    "python": python_file,
    "numpy": numpy_function,
    "c": c_file,
    "torch": torch_file,
    "sympy": sympy_file,
    "latex": latex_text,
}
"""Export formats of the command line, each a function from a formula to text."""


def export(formula: Formula, format_name: str) -> str:
    """The formula in one of the `FORMATS`.

    Raises
    ------
    UsageError
        If the format is unknown, or an operator of the formula has no form in it.
    """
    try:
        write = FORMATS[format_name]
    except KeyError:
        raise UsageError(
            f"unknown export format '{visible(format_name)}'; known are {' '.join(FORMATS)}"
        ) from None
    return write(formula)


def _identifier_part(target: str) -> str:
    from physdiffuser.data.aliases import readable_alias

    return readable_alias(target).strip("_")


def _spread(formula: Formula, arguments: Sequence[str]) -> list[str]:
    """The written names at the positions of all columns."""
    names = [""] * len(formula.names)
    for position, argument in zip(formula.used, arguments, strict=True):
        names[position] = argument
    return names
