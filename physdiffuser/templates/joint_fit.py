"""Forms of the unknown functions, put into the template and fitted to the table together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import ONE, Apply, Expression, Number, Parameter
from physdiffuser.expressions.tree import bind, div, free_constants, parameter_count
from physdiffuser.finalize.constants.freed import with_freed_constants
from physdiffuser.fitting import fit_constants
from physdiffuser.selection.description_length import DescriptionLength
from physdiffuser.templates.partial_tables import arguments_of
from physdiffuser.templates.surrogates import DEGREES, polynomial, terms
from physdiffuser.templates.template import Template

# Starts of a fit of polynomials, and of a form that comes with the constants it was found with.
STARTS, FEW_STARTS = 16, 4
# Polynomials have at most one coefficient for so many rows, and so many altogether.
ROWS_PER_TERM, MAX_TERMS = 3, 40


@dataclass(frozen=True)
class Form:
    """A formula of the arguments of a function.

    Attributes
    ----------
    skeleton
        With a parameter for each constant.
    known
        Values with which it was found, one for each parameter.
    """

    skeleton: Expression
    known: tuple[float, ...]


@dataclass(frozen=True)
class Model:
    """A form for each function, and the values of all constants.

    Attributes
    ----------
    forms
        By name of the function.
    parameters
        Of the composed formula: the constants of the template, and then those of the forms.
    loss
        Relative to the best constant's.
    length
        Nats to describe the table, up to a constant of the table.
    skeleton
        The composed formula.
    """

    forms: Mapping[str, Form]
    parameters: FloatArray
    loss: float
    length: float
    skeleton: Expression

    @property
    def expression(self) -> Expression:
        """The composed formula with its constants."""
        return bind(self.skeleton, list(self.parameters))

    @property
    def skeletons(self) -> dict[str, Expression]:
        """The skeletons of the forms."""
        return {name: form.skeleton for name, form in self.forms.items()}


def forms_of(formulas: Sequence[Expression]) -> list[Form]:
    """The skeletons of formulas; also without a constant term and factor, which the template may hold."""
    found: dict[Expression, Form] = {}
    for formula in formulas:
        for freed in (formula, with_freed_constants(formula)):
            shifted = _without(freed, ("add", "sub"))
            for variant in (
                freed,
                shifted,
                _without(freed, ("mul", "div")),
                _without(shifted, ("mul", "div")),
            ):
                skeleton, values = free_constants(variant)
                found.setdefault(skeleton, Form(skeleton, values))
    return list(found.values())


def _without(formula: Expression, operators: tuple[str, str]) -> Expression:
    """The formula without a fitted constant that is the last operation, or a factor of a numerator."""
    if not isinstance(formula, Apply) or formula.operator not in operators:
        return formula
    left, right = formula.arguments
    if _is_fitted(right):
        return left
    if formula.operator in ("add", "mul"):
        return right if _is_fitted(left) else formula
    if formula.operator == "div":
        return div(ONE if _is_fitted(left) else _without(left, operators), right)
    return formula


def _is_fitted(formula: Expression) -> bool:
    return isinstance(formula, Number) and not formula.exact


class JointFits:
    """Fits of forms to a table.

    Parameters
    ----------
    template
        The structure.
    problem
        The table, with its rules.
    floor
        Relative loss that rounding alone causes.
    seed
        Of the starts.
    """

    def __init__(self, template: Template, problem: Problem, floor: float, seed: int) -> None:
        self.template, self.problem, self._seed = template, problem, seed
        self.measure = DescriptionLength(problem.rows, problem.columns, floor)

    def fit(self, forms: Mapping[str, Form], constants: FloatArray, starts: int = 1) -> Model | None:
        """Fit all constants together; None where there is no finite value.

        Parameters
        ----------
        forms
            For each function; their constants start from the values that are known.
        constants
            Where the constants of the template start.
        starts
            How many starts to follow.
        """
        skeletons = {name: form.skeleton for name, form in forms.items()}
        composed = self.template.compose(skeletons)
        if composed is None:
            return None
        start = [*constants, *(value for one in self.template.functions for value in forms[one.name].known)]
        problem = self.problem
        fit = fit_constants(
            composed,
            problem.inputs,
            problem.target,
            weights=problem.weights,
            loss=problem.loss,
            initial=np.array(start),
            starts=starts,
            rng=np.random.default_rng([self._seed, 23]),
        )
        if not np.isfinite(fit.loss):
            return None
        nats = sum(self.measure.formula_nats(one) for one in skeletons.values())
        length = self.measure.total(nats, len(start), fit.loss)
        return Model(forms, fit.parameters, fit.loss, length, composed)

    def with_known(self, model: Model, name: str, form: Form, starts: int = 1) -> Model | None:
        """The model with another form of one function, fitted from the constants of the model."""
        places = self.template.constants_of(model.skeletons)
        now = {
            other: Form(one.skeleton, tuple(model.parameters[places[other]].tolist()))
            for other, one in model.forms.items()
        }
        constants = model.parameters[: len(self.template.constants)]
        return self.fit({**now, name: form}, constants, starts)

    def polynomials(self) -> Model | None:
        """The polynomials that describe the table in the fewest nats; None where no fit is finite."""
        template, best = self.template, None
        ones = {one.name: Form(Parameter(0), (1.0,)) for one in template.functions}
        constants = np.ones(len(template.constants))
        points = {
            one.name: np.concatenate(
                arguments_of(
                    template,
                    one,
                    {name: form.skeleton for name, form in ones.items()},
                    np.concatenate([constants, np.ones(len(ones))]),
                    self.problem.inputs,
                )
            )
            for one in template.functions
        }
        tried: set[tuple[int, ...]] = set()
        for single, several in DEGREES:
            degrees = tuple(single if len(one.arguments) == 1 else several for one in template.functions)
            pairs = list(zip(degrees, template.functions, strict=True))
            total = sum(terms(degree, len(one.arguments)) for degree, one in pairs)
            most = min(self.problem.rows / ROWS_PER_TERM, MAX_TERMS)
            if degrees in tried or (best is not None and total > most):
                continue
            tried.add(degrees)
            forms = {}
            for degree, one in pairs:
                skeleton = polynomial(degree, points[one.name])
                forms[one.name] = Form(skeleton, (1.0, *[0.0] * (parameter_count(skeleton) - 1)))
            start = constants if best is None else best.parameters[: len(constants)]
            made = self.fit(forms, start, STARTS)
            if made is None:
                continue
            # Coefficients take no form to write down: only their number counts.
            length = self.measure.total(0.0, len(made.parameters), made.loss)
            if best is None or length < best.length:
                best = Model(forms, made.parameters, made.loss, length, made.skeleton)
        return best
