"""The enumeration generator: stages of growing cost, the cheap ones first.

A run alternates between lookups that assume exact data (hashing, very fast) and screenings that do
not (matrix products), because it cannot know which kind of table it was given; each stage uses a
larger library than the one before. All stages work on every hypothesis about the reduction of the law.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from physdiffuser.core.archive import NOTHING_LEFT, Archive
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.core.work import MeteredGenerator, Work
from physdiffuser.device import HOST, Device
from physdiffuser.expressions import Expression, Number, Variable
from physdiffuser.expressions.tree import mul
from physdiffuser.functions.standard_fits import standard_candidates
from physdiffuser.generation.enumeration.curve_stage import curve_stage
from physdiffuser.generation.enumeration.parametric_stage import parametric_stage
from physdiffuser.generation.enumeration.parametric_sums import parametric_sums
from physdiffuser.generation.enumeration.run import Run, Stage
from physdiffuser.library.matches import near_simple
from physdiffuser.noise.noise_floor import as_telling, levels, telling, telling_first
from physdiffuser.reduction.factors import relevant_columns
from physdiffuser.reduction.proposed_reductions import ProposedReductions
from physdiffuser.reduction.trend import plausible
from physdiffuser.selection.description_length import leaves_noise

# Stages that look for exact matches; they come last where numbers are rounded more coarsely than this.
EXACT = ("clean", "prefactors", "triples")
FINE = 1e-6
# With fewer rows residuals pass for noise whatever they are.
ENOUGH_ROWS = 30
# Reductions of one feature on which functions with constants are tried early.
MOST_CURVES = 2

LADDER: tuple[Stage, ...] = (
    Stage("clean", 1_500, depth=2),
    Stage("clean", 1_500, divisors=1_500, depth=2),
    Stage("collapse", 0),
    Stage("sums", 300, features=3),
    Stage("noisy", 600, divisors=100, features=3),
    Stage("scaled sums", 400, divisors=100, features=2),
    Stage("prefactors", 6_000, divisors=40, depth=2, shifts=120),
    Stage("parametric", 40, divisors=30, features=1),
    Stage("curves", 0, features=1),
    Stage("clean", 15_000, divisors=3_000, depth=2),
    Stage("sums", 3_000),
    Stage("noisy", 1_500, divisors=300),
    Stage("scaled sums", 400, divisors=100, least=3),
    Stage("parametric sums", 6, divisors=4, shifts=20, features=1),
    Stage("parametric", 40, divisors=30, least=2, features=2),
    Stage("triples", 15_000, divisors=150, shifts=400),
    Stage("parametric sums", 6, divisors=4, shifts=20, least=2, features=2),
    Stage("parametric", 40, divisors=30, least=3),
    Stage("scaled sums", 1_500, divisors=600),
    Stage("noisy", 10_000, divisors=1_000),
    Stage("prefactors", 60_000, divisors=200, depth=2, shifts=300),
    Stage("triples", 40_000, divisors=250, shifts=2_000),
    Stage("clean", 120_000, divisors=20_000, depth=1),
    Stage("parametric", 150, divisors=200),
    Stage("parametric sums", 12, divisors=6, shifts=60),
    Stage("sums", 12_000),
    Stage("clean", 400_000, divisors=20_000, depth=2),
    Stage("noisy", 40_000, divisors=5_000),
    Stage("triples", 200_000, divisors=400, shifts=6_000),
    Stage("clean", 600_000, divisors=60_000, depth=1),
    Stage("sums", 40_000),
)

# Where noise shows before any law is known: nothing exact, and what costs little before what costs much.
NOISY_LADDER: tuple[Stage, ...] = (
    Stage("collapse", 0),
    Stage("sums", 300),
    Stage("noisy", 600, divisors=100),
    Stage("scaled sums", 400, divisors=100, features=2),
    Stage("parametric", 40, divisors=30, features=1),
    Stage("curves", 0, features=1),
    Stage("sums", 3_000),
    Stage("noisy", 1_500, divisors=300),
    Stage("scaled sums", 400, divisors=100, least=3),
    Stage("parametric", 40, divisors=30, least=2, features=2),
    Stage("scaled sums", 1_500, divisors=600),
    Stage("noisy", 10_000, divisors=1_000),
    Stage("parametric sums", 6, divisors=4, shifts=20, features=1),
    Stage("parametric", 40, divisors=30, least=3),
    Stage("parametric sums", 6, divisors=4, shifts=20, least=2, features=2),
    Stage("sums", 12_000),
    Stage("parametric", 150, divisors=200),
    Stage("noisy", 40_000, divisors=5_000),
    Stage("parametric sums", 12, divisors=6, shifts=60),
    Stage("sums", 40_000),
)

# What is done on reductions that formulas suggest.
SUGGESTED_LADDER: tuple[Stage, ...] = (
    Stage("sums", 300),
    Stage("noisy", 1_500, divisors=300),
)


class EnumerationGenerator(MeteredGenerator):
    """Library lookups in order of cost; see the package's modules for each part.

    Parameters
    ----------
    device
        Where pairs are ranked and constants fitted.
    """

    name = "enumeration"

    def __init__(self, device: Device = HOST) -> None:
        super().__init__()
        self._device = device
        # The formula whose residuals were looked at last, and whether they are noise.
        self._judged: tuple[Expression | None, bool] = (None, False)

    def run(self, problem: Problem, archive: Archive) -> Work:
        """Candidates stage by stage; see `MeteredGenerator`."""
        if problem.columns == 0:
            return
        yield from _sums_of_columns(problem)
        # Where a power law or a line leaves nothing over, the other usual laws are not worth their fits.
        if not archive.is_solved:
            yield from standard_candidates(problem, archive.analysis)
        analysis = archive.analysis.first
        every, known = list(analysis.reductions), list(analysis.levels)
        yield from _power_laws(every, problem)
        yield 0.02
        run = Run(problem, self._device)
        # Numbers of few digits are screened first, for the screenings tell as many digits apart as they have;
        # so is a single column, whose screenings are cheap.
        exact_first = run.tolerance < FINE and problem.columns > 1
        if analysis.noisy:
            ladder = NOISY_LADDER
            every = list(dict.fromkeys([*telling(analysis.rough, known), *every]))
        else:
            ladder = LADDER if exact_first else tuple(sorted(LADDER, key=lambda stage: stage.kind in EXACT))
        suggestions, curves = ProposedReductions(problem, known), False
        for number, stage in enumerate(ladder):
            if stage.kind != "collapse":
                pairs = [(stage, reduction) for reduction in _suited(stage, every)]
            else:
                later = yield from archive.analysis.later()
                new = [reduction for reduction in later if reduction not in every]
                yield from _power_laws(new, problem)
                every = [*new, *every]
                believed = set(plausible(problem, every))
                if analysis.noisy:
                    # Noise grows where a factor that spans decades is divided out; this judges by the target.
                    known += levels(problem, new)
                    believed |= as_telling(known)
                    # Of the reductions with one feature only the first are tried with constants inside.
                    every = telling_first(every, known)
                every = [reduction for reduction in every if reduction in believed]
                new = [reduction for reduction in every if reduction in new]
                pairs = [
                    (earlier, reduction) for earlier in ladder[:number] for reduction in _suited(earlier, new)
                ]
            for some, reduction in pairs:
                # A formula that leaves nothing but noise may be the law but for one function; before that,
                # formulas worth reading have come up when curves have been tried.
                if self._noisy(problem, archive) or (curves and analysis.noisy):
                    for better in suggestions.take(archive, every):
                        for step in SUGGESTED_LADDER:
                            yield from run.screened(step, better, average=True)
                if some.kind in EXACT and self._noisy(problem, archive):
                    continue
                yield from _work(run, some, reduction)
                curves = curves or some.kind == "parametric"
                if archive.is_solved:
                    # What is simpler by this stage's own measure has been looked at.
                    return

    def _noisy(self, problem: Problem, archive: Archive) -> bool:
        """Whether the best formula so far leaves noise over: nothing exact is to be found then."""
        front = archive.front()
        if not front:
            return False
        best = min(front, key=archive.length)
        if best.loss < NOTHING_LEFT:
            return False
        expression = best.candidate.expression
        if expression != self._judged[0]:
            self._judged = expression, leaves_noise(problem, expression)
        return self._judged[1] and problem.rows >= ENOUGH_ROWS


def _suited(stage: Stage, reductions: list[Reduction]) -> list[Reduction]:
    """The reductions that a stage is for; of those with a single feature the first few, which come first."""
    suited = [
        reduction for reduction in reductions if stage.least <= len(reduction.features) <= stage.features
    ]
    return suited[:MOST_CURVES] if stage.features == 1 else suited


def _work(run: Run, stage: Stage, reduction: Reduction) -> Work:
    """One stage on one reduction."""
    if stage.kind == "parametric":
        yield from parametric_stage(run, stage, reduction)
    elif stage.kind == "curves":
        yield from curve_stage(run, reduction)
    elif stage.kind == "parametric sums":
        yield from parametric_sums(run, stage, reduction)
    elif stage.kind in EXACT:
        yield from run.exact(stage, reduction)
    else:
        yield from run.screened(stage, reduction)


def _sums_of_columns(problem: Problem) -> Work:
    """Sums of the telling columns, and power products of them with fitted exponents (sums of logarithms).

    What any other formula has to beat, in a few milliseconds.
    """
    # Here, because the sparse package builds on this one.
    from physdiffuser.generation.sparse.dictionary import make
    from physdiffuser.generation.sparse.logarithmic import logarithmic
    from physdiffuser.generation.sparse.regression import forward, least_squares, scaled
    from physdiffuser.generation.sparse.sums import combination

    weights = np.ones(problem.rows) if problem.weights is None else problem.weights
    columns = [Variable(column) for column in relevant_columns(problem.inputs, problem.target)]
    dictionary = make(list(columns), problem.inputs)
    for supports in forward(*scaled(dictionary.values, problem.target, weights)):
        best = supports[0].columns
        coefficients = least_squares(dictionary.values[:, best], problem.target, weights)
        if coefficients is None:
            continue
        tree = combination(coefficients, [dictionary.terms[column] for column in best])
        if tree is not None:
            yield Candidate(tree, "enumeration", ("fitted a sum of columns",))
    # The same of the logarithms.
    yield from logarithmic(problem, Reduction((), tuple(columns)), plain=True)


def _power_laws(every: list[Reduction], problem: Problem) -> Iterator[Candidate]:
    """Pure power laws: each hypothesis with nothing but a constant left."""
    for reduction in every:
        tree = reduction.factor()
        if tree is None:
            continue
        product = reduction.product(problem.inputs)
        weights = np.ones_like(product) if problem.weights is None else problem.weights
        scale = np.abs(product).max()
        unit = product / scale
        constant = float((weights * unit * problem.target).sum() / (weights * unit * unit).sum() / scale)
        if np.isfinite(constant) and constant != 0:
            number = near_simple(constant, 1e-11)
            yield Candidate(
                tree if number == Number(1) else mul(number, tree),
                "enumeration",
                ("the logarithm of the target is linear in the logarithms of the columns: a power law",),
            )
