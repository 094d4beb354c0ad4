"""Exported systems: the code runs and gives the rates of the equations."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from click.testing import CliRunner

from physdiffuser.cli.app import cli
from physdiffuser.core.solution import Equation, Solution
from physdiffuser.data.dataset import Column
from physdiffuser.dynamics.report.document import dynamics_document
from physdiffuser.dynamics.report.exports import FORMATS
from physdiffuser.dynamics.report.solution import DynamicsSolution, SimulationSummary
from physdiffuser.errors import UsageError
from physdiffuser.expressions import evaluate, parse
from physdiffuser.report.documents.json_document import document_text


def system(names: list[str], equations: list[str], order: int = 1, inputs: int = 0) -> DynamicsSolution:
    """Equations over states, derivatives, inputs and the time, without a search."""
    columns = [Column(name, name) for name in names]
    count = len(equations)
    solutions = []
    for text, column in zip(equations, columns, strict=False):
        expression = parse(text, names)
        best = Equation(expression, text, text, 5, 0.0, 1.0, 0.0)
        solutions.append(
            Solution(f"d{column.name}/dt", "approximate", best, (best,), tuple(names), tuple(names), {})
        )
    return DynamicsSolution(
        columns[-1],
        tuple(columns[:count]),
        tuple(columns[count * order : count * order + inputs]),
        order,
        tuple(solutions),
        SimulationSummary({}, {}, "", False),
        tuple(columns[count : count * order]),
        version="0",
    )


FORCED = system(["x", "x_dot", "u", "t"], ["u - 1.7*sin(x) - x_dot/4 + cos(2*t)**2"], order=2, inputs=1)
PREY = system(["prey", "lambda", "t"], ["1.1*prey - 0.41*prey*lambda", "0.3*prey*lambda - lambda/(1 + prey)"])


def loaded(text: str, path: Path) -> ModuleType:
    import importlib.util

    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rates(found: DynamicsSolution, values: list[float]) -> np.ndarray:
    return np.array([float(evaluate(rate, np.array([values]))[0]) for rate in found.flow])


def test_the_numpy_right_hand_side_integrates(tmp_path: Path) -> None:
    module = loaded(PREY.export("python"), tmp_path / "prey.py")
    assert np.allclose(module.rates(0.0, [2.0, 0.7]), rates(PREY, [2.0, 0.7, 0.0]))
    from scipy.integrate import solve_ivp

    times = np.linspace(0.0, 5.0, 20)
    path = solve_ivp(module.rates, (0.0, 5.0), [2.0, 0.7], t_eval=times, rtol=1e-9, atol=1e-10).y.T
    assert np.abs(path - PREY.simulate([2.0, 0.7], times)).max() < 1e-5
    driven = loaded(FORCED.export("numpy"), tmp_path / "forced.py")
    assert np.allclose(driven.rates(0.4, [1.2, 0.3], lambda t: [0.8]), rates(FORCED, [1.2, 0.3, 0.8, 0.4]))


def test_the_torch_module_has_the_fitted_constants_as_parameters(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    module = loaded(PREY.export("torch"), tmp_path / "prey_torch.py").Rates()
    state = torch.tensor([[2.0, 0.7], [1.0, 0.2]], dtype=torch.float64)
    found = module(0.0, state).detach().numpy()
    assert np.allclose(found, [rates(PREY, [2.0, 0.7, 0.0]), rates(PREY, [1.0, 0.2, 0.0])])
    driven = loaded(FORCED.export("torch"), tmp_path / "forced_torch.py").Rates()
    one = driven(torch.tensor(0.4), state[0], torch.tensor([0.8], dtype=torch.float64))
    assert np.allclose(one.detach().numpy(), rates(FORCED, [2.0, 0.7, 0.8, 0.4]), atol=1e-6)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_the_c_function_compiles_and_agrees(tmp_path: Path) -> None:
    main = """
#include <stdio.h>
int main(void) {
    double state[] = {1.2, 0.3}, inputs[] = {0.8}, rate[2];
    rates(0.4, state, inputs, rate);
    printf("%.17g %.17g\\n", rate[0], rate[1]);
    return 0;
}
"""
    source = tmp_path / "system.c"
    source.write_text(FORCED.export("c") + main, encoding="utf-8")
    binary = tmp_path / "system"
    flags = ["-std=c99", "-Wall", "-Werror", str(source), "-o", str(binary), "-lm"]
    subprocess.run(["cc", *flags], check=True, timeout=60)
    printed = subprocess.run([str(binary)], check=True, capture_output=True, text=True, timeout=60).stdout
    assert np.allclose([float(part) for part in printed.split()], rates(FORCED, [1.2, 0.3, 0.8, 0.4]))


def test_the_julia_text_is_a_modelingtoolkit_system() -> None:
    text = FORCED.export("julia")
    assert "@variables x(t) u(t)" in text
    assert "D(D(x)) ~ " in text and "D(x)" in text.split("~")[1]
    assert "cos(2*t)^2" in text and "**" not in text.split("using")[1]
    assert "D(prey) ~ " in PREY.export("julia")


def test_the_sympy_script_builds_the_equations(tmp_path: Path) -> None:
    import sympy

    module = loaded(FORCED.export("sympy"), tmp_path / "forced_sympy.py")
    [equation] = module.equations
    t = sympy.Symbol("t", real=True)
    assert equation.lhs == sympy.Derivative(module.x, (t, 2))
    value = equation.rhs.subs(sympy.Derivative(module.x, t), 0.3).subs({module.x: 1.2, module.u: 0.8, t: 0.4})
    assert abs(float(value) - rates(FORCED, [1.2, 0.3, 0.8, 0.4])[1]) < 1e-12


def test_the_command_exports_a_stored_system(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(document_text(dynamics_document(PREY)), encoding="utf-8")
    for name in FORMATS:
        run = CliRunner().invoke(cli, ["export", str(tmp_path), "--format", name])
        assert run.exit_code == 0 and run.stdout.strip(), (name, run.output)
    refused = CliRunner().invoke(cli, ["export", str(tmp_path), "--row", "2"], standalone_mode=False)
    assert isinstance(refused.exception, UsageError)
    with pytest.raises(UsageError, match="known are"):
        PREY.export("cobol")


def test_names_from_a_table_cannot_leave_their_comment() -> None:
    hostile = Column('a"""\nimport os', "a")
    found = system(["a", "t"], ["-a"])
    from dataclasses import replace

    text = replace(found, states=(hostile,)).export("python")
    compile(text, "export", "exec")
    assert "\nimport os" not in text
    assert sys.modules  # the module was compiled, not run
