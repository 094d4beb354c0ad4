"""Groups: forms that a law may have."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser.expressions import Parameter, Variable, complexity
from physdiffuser.expressions.tree import add, bind, call, mul
from physdiffuser.fitting import fit_constants
from physdiffuser.groups.candidates import forms_of_fits


def test_waves_of_usual_laws_have_a_phase_as_well() -> None:
    t = np.linspace(0.0, 6.0, 60)
    angle = mul(Parameter(2), Variable(0))
    wave = add(mul(Parameter(0), call("cos", angle)), mul(Parameter(1), call("sin", angle)))
    skeleton = mul(call("exp", mul(Parameter(3), Variable(0))), wave)
    target = 1.2 * np.cos(1.4 * t + 0.4) * np.exp(-0.3 * t)
    start = np.array([[1.0], [-0.5], [1.4], [-0.3]])
    fit = fit_constants(skeleton, t[:, None], target, initial=start, starts=1)
    usual, phased = forms_of_fits([fit])
    # As many constants, but the amplitude may be the same in all groups where the phase is not.
    assert usual.skeleton == skeleton and len(phased.known) == 4
    assert sorted(phased.known) == pytest.approx([-0.3, 0.4, 1.2, 1.4])
    assert complexity(bind(phased.skeleton, list(phased.known))) < complexity(fit.expression)
