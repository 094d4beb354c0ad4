"""LaTeX of formulas."""

from __future__ import annotations

import pytest
from expression_strategies import fitted_trees
from hypothesis import HealthCheck, given, settings

from physdiffuser.expressions import Expression, Number, Parameter, Variable, parse
from physdiffuser.expressions.printing.latex import latex_name, to_latex

NAMES = ["m", "v_0", "theta", "x1", "B_max", "lambda_"]


@pytest.mark.parametrize(
    ("formula", "latex"),
    [
        ("m*v_0**2/2", r"\frac{m v_{0}^{2}}{2}"),
        ("2*pi*sqrt(m/v_0)", r"2 \pi \sqrt{\frac{m}{v_{0}}}"),
        ("exp(-m/theta)", r"e^{-\frac{m}{\theta}}"),
        ("-m/(2*v_0)", r"-\frac{m}{2 v_{0}}"),
        ("5/2*m*exp(-0.3*v_0)", r"\frac{5}{2} m e^{-0.3 v_{0}}"),
        ("m/8 - 0.27", r"\frac{m}{8} - 0.27"),
        ("(m + x1)*B_max", r"\left(m + x_{1}\right) B_{\mathrm{max}}"),
        ("sin(theta)**2", r"\sin^{2}\left(\theta\right)"),
        ("sin(theta)**-2", r"\sin\left(\theta\right)^{-2}"),
        ("asin(lambda_)", r"\arcsin\left(\lambda\right)"),
        ("abs(m)", r"\left|m\right|"),
        ("m**1.5", r"m^{3/2}"),
        ("(m**2)**3", r"\left(m^{2}\right)^{3}"),
        ("(-m)**2", r"\left(-m\right)^{2}"),
        ("m - (x1 - 2)", r"m - \left(x_{1} - 2\right)"),
        ("2*3*m", r"2 \cdot 3 m"),
        ("m*2", r"m \cdot 2"),
        ("1.5e-10*m", r"1.5 \cdot 10^{-10} m"),
        ("m - -2", r"m - \left(-2\right)"),
        ("m*(-2)", r"m \left(-2\right)"),
        ("-(m + x1)", r"-\left(m + x_{1}\right)"),
        ("exp(m)**2", r"\left(e^{m}\right)^{2}"),
    ],
)
def test_formulas(formula: str, latex: str) -> None:
    assert to_latex(parse(formula, NAMES), NAMES) == latex


@pytest.mark.parametrize(
    ("name", "latex"),
    [
        ("x", "x"),
        ("alpha", r"\alpha"),
        ("theta1", r"\theta_{1}"),
        ("omega_0", r"\omega_{0}"),
        ("lambda_", r"\lambda"),
        ("h_bar", r"\hbar"),
        ("θ", r"\theta"),
        ("Ω", r"\Omega"),
        ("mass", r"\mathrm{mass}"),
        ("k_spring", r"k_{\mathrm{spring}}"),
        ("a_b_c", r"\mathrm{a\_b\_c}"),
        ("温度", r"\mathrm{温度}"),
        ("a{b}$%&#^~\\", r"\mathrm{a\{b\}\$\%\&\#\textasciicircum{}\textasciitilde{}\textbackslash{}}"),
    ],
)
def test_names(name: str, latex: str) -> None:
    assert latex_name(name) == latex


def test_digits_and_unnamed_columns() -> None:
    assert to_latex(Number(0.123456789), digits=3) == "0.123"
    assert to_latex(Variable(2)) == "x_{3}"
    assert to_latex(Parameter(0)) == "c_{1}"


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(fitted_trees)
def test_braces_and_brackets_balance(tree: Expression) -> None:
    latex = to_latex(tree)
    depth = 0
    for letter in latex:
        depth += (letter == "{") - (letter == "}")
        assert depth >= 0
    assert depth == 0
    assert latex.count(r"\left") == latex.count(r"\right")
    assert "--" not in latex
