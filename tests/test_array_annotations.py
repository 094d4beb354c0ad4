"""Annotated array shapes hold: the tests of these modules run with checks of every annotated call."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent
CHECKED = (
    "fitting/test_accuracy.py",
    "fitting/test_batched_fit.py",
    "fitting/test_effective_variance.py",
    "fitting/test_linear.py",
    "fitting/test_score_test.py",
    "fitting/test_student.py",
    "fitting/test_tape.py",
    "fitting/test_uncertainty.py",
    "generation/test_library.py",
    "generation/test_matches.py",
    "generation/test_screening_weights.py",
    "models/test_curves.py",
    "models/test_encoding.py",
    "models/test_grammar.py",
    "models/test_networks.py",
    "models/test_row_features.py",
)
# Arrays of another device are no arrays of numpy; the others take long and call what shorter tests call too.
LEFT_OUT = ("device", "intervals_hold", "heavy_tailed", "coverage", "together_as_alone")
WRONG = """
import numpy as np
from physdiffuser.fitting.linear import linear_least_squares
try:
    linear_least_squares(np.ones((2, 5)), np.ones(4))
except Exception as error:
    print(type(error).__name__)
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PHYSDIFFUSER_CHECK_ARRAYS": "1"}
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def test_annotated_functions_are_called_with_the_shapes_they_state() -> None:
    options = ("-q", "-n", "0", "-p", "no:cacheprovider", "-k", f"not ({' or '.join(LEFT_OUT)})")
    done = run("-m", "pytest", *options, *(str(TESTS / name) for name in CHECKED))
    assert done.returncode == 0, done.stdout[-3000:]


def test_a_wrong_shape_is_an_error_where_shapes_are_checked() -> None:
    assert run("-c", WRONG).stdout.strip() == "TypeCheckError"


def test_a_run_of_the_program_does_not_import_the_checker() -> None:
    code = "import sys, physdiffuser.pipeline; print([name for name in sys.modules if 'jaxtyping' in name])"
    environment = {name: value for name, value in os.environ.items() if name != "PHYSDIFFUSER_CHECK_ARRAYS"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
