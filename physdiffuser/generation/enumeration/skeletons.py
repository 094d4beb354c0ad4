"""Laws with parameters inside, fitted and offered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.reduction import Reduction
from physdiffuser.core.work import Work
from physdiffuser.expressions import Expression
from physdiffuser.generation.enumeration.context import Context
from physdiffuser.generation.enumeration.parametric import POLICY as PARAMETRIC
from physdiffuser.generation.enumeration.parametric import fitted
from physdiffuser.transforms.transform import OutputTransform


class Skeleton(NamedTuple):
    """A law of the transformed target, a start for each of its parameters, and its derivation."""

    transform: OutputTransform
    law: Expression
    start: list[float]
    derivation: tuple[str, ...]


def offer_fitted(
    context: Context,
    reduction: Reduction,
    skeletons: Sequence[Skeleton],
    iterations: int = PARAMETRIC.iterations,
    tolerance: float = PARAMETRIC.tolerance,
) -> Work:
    """Fit skeletons in batches and offer those that fit; see `parametric.fitted`."""
    remaining = iter(skeletons)
    for fits in fitted(
        context.problem,
        reduction,
        [skeleton.transform for skeleton in skeletons],
        [skeleton.law for skeleton in skeletons],
        [skeleton.start for skeleton in skeletons],
        iterations=iterations,
        tolerance=tolerance,
        device=context.device,
    ):
        for fit, skeleton in zip(fits, remaining, strict=False):
            if np.isfinite(fit.loss):
                yield Candidate(fit.expression, "enumeration", skeleton.derivation)
        yield 0.005 * len(fits)
