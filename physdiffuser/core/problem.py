"""What a generator is given: the rows to explain and the rules a formula must obey."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.expressions import OPERATORS, Apply, Expression, Symbol
from physdiffuser.expressions.nesting import nesting_test
from physdiffuser.expressions.tree import walk

if TYPE_CHECKING:
    from physdiffuser.core.solution_parts.constraint_status import ConstraintStatus
    from physdiffuser.units.unit import Unit

Loss = Literal["squared", "robust"]
NoiseModelName = Literal["auto", "constant", "relative", "poisson", "mixed", "robust"]


class Rules(Protocol):
    """What a law must satisfy beside the rules of a problem; see `physdiffuser.constraints.rules`."""

    def holds(self, expression: Expression) -> bool:
        """Whether a formula satisfies them."""
        ...

    def statuses(self, expression: Expression, names: Sequence[str]) -> tuple[ConstraintStatus, ...]:
        """The status of each for a formula."""
        ...

    def fitted(self, expression: Expression, problem: Problem) -> Expression | None:
        """The formula with constants with which it satisfies them; None if none are found."""
        ...

    @property
    def points(self) -> FloatArray:
        """Where formulas are tested, shape (points, columns)."""
        ...

    def penalties(self, values: FloatArray) -> FloatArray:
        """By how much the values of a formula at `points` violate them, shape (tests,)."""
        ...

    def stated_near(self, value: float, share: float) -> list[float]:
        """Numbers that they state and that a constant may become, the nearest first."""
        ...


@dataclass(frozen=True)
class Problem:
    """Rows to explain and rules to obey.

    Attributes
    ----------
    inputs
        Shape (rows, columns): a subsample of the table, never rows of the test set.
    target
        Shape (rows,).
    names
        Variable names, for derivations.
    weights
        Shape (rows,), positive, mean 1; None when all rows count the same. The loss of a row is
        multiplied by its weight (1/sigma**2 for known errors).
    operators
        Names of the operators that may occur.
    forbidden
        Pairs of operators: the second may not occur anywhere inside the first.
    max_complexity
        Formulas above it are not accepted.
    constants
        Named constants that may occur with their given values; `pi` is always allowed.
    units, target_unit
        Exponent vectors of the columns and of the target when all are known, else None: formulas
        must then balance.
    constant_units
        Units of those constants whose unit is known; the others may carry any.
    physical_constants
        Constants of nature that fitted constants may turn out to be; only with units, in SI.
    name_constants
        Whether fitted constants that agree with a physical constant, or with a product of some, become it.
    noise
        Relative sigma of the target, if the user knows it.
    sigma
        Standard deviation of the target in a row of weight 1, where the user has stated the errors.
    loss
        "squared", or "robust" for errors with heavy tails.
    seed
        Everything random in a generator is derived from it.
    target_name
        What derivations call the target.
    rules
        Constraints of the user; None when there are none.
    exact_tried
        Whether an earlier search of these rows, with other weights, has looked for exact matches.
    full_problem
        The same problem on all rows that constants are fitted to, where these are many more than the rows
        here: generators work on these, and what they leave open is decided there.
    """

    inputs: FloatArray
    target: FloatArray
    names: tuple[str, ...]
    weights: FloatArray | None = None
    operators: frozenset[str] = frozenset(OPERATORS)
    forbidden: frozenset[tuple[str, str]] = frozenset()
    max_complexity: int = 60
    constants: tuple[Symbol, ...] = ()
    units: tuple[Unit, ...] | None = None
    target_unit: Unit | None = None
    constant_units: Mapping[str, Unit] = field(default_factory=dict)
    physical_constants: tuple[Symbol, ...] = ()
    name_constants: bool = False
    noise: float | None = None
    sigma: float | None = None
    loss: Loss = "squared"
    seed: int = 0
    target_name: str = "y"
    rules: Rules | None = None
    exact_tried: bool = False
    full_problem: Problem | None = None

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.inputs.shape[0])

    @property
    def columns(self) -> int:
        """Number of input columns."""
        return int(self.inputs.shape[1])

    @property
    def positive(self) -> frozenset[int]:
        """The columns that are positive in all rows."""
        return frozenset(np.flatnonzero((self.inputs > 0).all(axis=0)).tolist())

    @property
    def all_rows(self) -> Problem:
        """The problem on all rows that constants are fitted to, where the search works on fewer."""
        return self.full_problem or self

    def allows(self, expression: Expression) -> bool:
        """Whether a formula can be written in this problem and satisfies the constraints."""
        return self.admits(expression) and self.satisfies(expression)

    def satisfies(self, expression: Expression) -> bool:
        """Whether a formula satisfies the constraints."""
        return self.rules is None or self.rules.holds(expression)

    def admits(self, expression: Expression) -> bool:
        """Whether a formula keeps to the problem's operators and nestings and balances in its units."""
        for node in walk(expression):
            if isinstance(node, Apply) and node.operator not in self.operators:
                return False
        if self.forbidden and not nesting_test(self.forbidden)(expression):
            return False
        if self.units is None or self.target_unit is None:
            return True
        from physdiffuser.expressions.units.dimensions import balances

        return balances(expression, self.units, self.target_unit, self.constant_units)

    def generator(self, *stream: int) -> np.random.Generator:
        """A random generator for one purpose; equal streams give equal numbers."""
        return np.random.default_rng([self.seed, *stream])


@dataclass
class Budget:
    """What one call of a generator may spend.

    Steps are the unit of work and make runs reproducible; the clock is the backstop. A generator
    calls `spend` after each bounded piece of work (a tenth of a second or so) and returns when it
    answers False.
    """

    steps: int
    deadline: float = float("inf")
    clock: Callable[[], float] = time.monotonic
    cancelled: Callable[[], bool] = field(default=lambda: False)
    spent: int = 0

    def spend(self, steps: int = 1) -> bool:
        """Account for work done; True while there is more to spend."""
        self.spent += steps
        return not self.exhausted

    @property
    def exhausted(self) -> bool:
        """Whether the steps are used up, the time is over, or the user asked to stop."""
        return self.spent >= self.steps or self.clock() >= self.deadline or self.cancelled()
