"""From a table and options to a problem, and the generators that will work on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.generator import Generator
from physdiffuser.core.problem import NoiseModelName, Problem
from physdiffuser.data.dataset import Dataset
from physdiffuser.device import open_device
from physdiffuser.errors import PluginError, UsageError
from physdiffuser.expressions import Number, Symbol, parse
from physdiffuser.options import MAX_NEXT
from physdiffuser.search.vocabulary import allowed_operators, forbidden_nestings, parse_complexity

if TYPE_CHECKING:
    from physdiffuser.constraints.rules import ConstraintRules
    from physdiffuser.options import SolveOptions
    from physdiffuser.plugin_system.manager import Plugins


def check_options(options: SolveOptions) -> None:
    """Refuse options that only a call from Python can get wrong."""
    time, steps, noise = options.time, options.steps, options.noise

    def above_zero(name: str, value: object, kinds: type | tuple[type, ...], what: str) -> None:
        right = isinstance(value, kinds) and not isinstance(value, bool)
        if not right or not 0 < value < float("inf"):  # type: ignore[operator]
            raise UsageError(f"{name}={value!r}: must be {what} above 0")

    if time is not None:
        above_zero("time", time, (int, float, np.integer, np.floating), "a number of seconds")
    if steps is not None:
        above_zero("steps", steps, (int, np.integer), "a whole number")
    if noise is not None and noise != 0:
        above_zero("noise", noise, (int, float, np.integer, np.floating), "a relative standard deviation")
    above_zero("max_complexity", options.max_complexity, (int, np.integer), "a whole number")
    if options.jobs is not None:
        above_zero("jobs", options.jobs, (int, np.integer), "a whole number of processes")
    suggest = options.suggest_next
    whole = isinstance(suggest, (int, np.integer)) and not isinstance(suggest, bool)
    if not whole or not 0 <= suggest <= MAX_NEXT:
        raise UsageError(f"suggest_next={suggest!r}: must be a whole number from 0 to {MAX_NEXT}")
    if options.suggest_range and not suggest:
        raise UsageError("suggest_range says where to look for next measurements: give suggest_next as well")
    if options.noise_model not in get_args(NoiseModelName):
        models = ", ".join(map(repr, get_args(NoiseModelName)))
        raise UsageError(f"noise_model={options.noise_model!r}: must be one of {models}")
    parse_complexity(options.complexity)
    # Also refuses a GPU where there is none, before any work is done.
    open_device(options.device)
    for name, value in (("generators", options.generators), ("operators", options.operators)):
        # A text is a sequence too, of its letters.
        if isinstance(value, str):
            listed = [part.strip() for part in value.split(",")]
            raise UsageError(f"{name}={value!r}: must be a list of names, such as {listed}")


def pose(
    dataset: Dataset, options: SolveOptions, loaded: Plugins
) -> tuple[Dataset, Problem, tuple[str, ...]]:
    """The problem that the table and the options pose (on all rows), and warnings."""
    from physdiffuser.data.statements.constants import PHYSICAL_CONSTANTS, names_constants, parse_constants

    known = parse_constants(options.constants, taken=dataset.names)
    constant_units = {constant.symbol.name: constant.unit for constant in known if constant.unit is not None}
    in_si = False
    if options.units is not None or options.units_row:
        from physdiffuser.data.statements.unit_files import load_units, units_from_row

        names = [constant.symbol.name for constant in known]
        if options.units is not None:
            table_units = load_units(options.units, dataset, constants=names)
        else:
            table_units = units_from_row(dataset.unit_strings, dataset)
        dataset = table_units.attach(dataset)
        constant_units |= table_units.named
        in_si = table_units.si
    column_units = tuple(column.unit for column in dataset.columns)
    complete = all(unit is not None for unit in column_units) and dataset.target_column.unit is not None
    physical: tuple[Symbol, ...] = ()
    if complete and in_si:
        taken = {*dataset.names, *(constant.symbol.name for constant in known)}
        of_nature = [constant for name, constant in PHYSICAL_CONSTANTS.items() if name not in taken]
        physical = tuple(Symbol(constant.symbol, constant.value) for constant in of_nature)
        constant_units |= {constant.symbol: constant.unit for constant in of_nature}
    problem = Problem(
        inputs=dataset.inputs,
        target=dataset.target,
        names=dataset.names,
        weights=dataset.weights,
        operators=allowed_operators(options.operators, loaded),
        forbidden=forbidden_nestings(options, loaded),
        max_complexity=options.max_complexity,
        constants=tuple(constant.symbol for constant in known),
        units=column_units if complete else None,  # type: ignore[arg-type]
        target_unit=dataset.target_column.unit if complete else None,
        constant_units=constant_units,
        physical_constants=physical,
        name_constants=names_constants(options.constants) and not complete,
        noise=options.noise,
        seed=options.seed,
        target_name=dataset.target_column.alias,
        rules=constraint_rules(options, dataset),
    )
    return dataset, problem, dataset.warnings


def constraint_rules(options: SolveOptions, dataset: Dataset) -> ConstraintRules | None:
    """The constraints that the options give, None without any; they hold in the bounding box of a table."""
    if options.constraints is None:
        return None
    from physdiffuser.constraints.reading import read_constraints
    from physdiffuser.constraints.rules import ConstraintRules

    constraints = read_constraints(options.constraints, dataset)
    spread = float(dataset.target.std()) or float(np.abs(dataset.target).max())
    return ConstraintRules(constraints, spread) if constraints else None


def build_generators(
    names: Sequence[str] | None, loaded: Plugins, **options: Any
) -> tuple[dict[str, Generator], tuple[str, ...]]:
    """Instances of the generators of this run, and warnings about those that could not be had."""
    every = loaded.generators.items()
    wanted = list(names) if names is not None else [name for name, record in every if record.spec.default]
    learned = {key: value for key, value in options.items() if value is not None}
    instances: dict[str, Generator] = {}
    refused = list(loaded.warnings)
    for name in wanted:
        spec = loaded.generator(name)
        accepted = {key: value for key, value in learned.items() if key in spec.options}
        try:
            instances[name] = spec.build(**{**spec.options, **accepted})
        except PluginError as error:
            if names is not None:
                raise
            refused.append(str(error))
    return instances, tuple(refused)


def initial_candidates(
    formulas: Sequence[str], options: SolveOptions, dataset: Dataset, problem: Problem
) -> list[Candidate]:
    """What a search starts from: the mean, and the formulas of an earlier run, the user and other targets."""
    known = {symbol.name: symbol.value for symbol in problem.constants}
    # The mean is finite whatever the rows are: a stopped or short run has an answer, if a poor one.
    mean = Candidate(Number(float(np.average(dataset.target, weights=dataset.weights))), "constant")
    origins = (
        (formulas, "earlier run", "found by an earlier run"),
        (options.initial, "guess", "given as a starting formula"),
        (options.proposed, "other target", "built from a part of the law of another target"),
    )
    return [
        mean,
        *(
            Candidate(parse(text, dataset.names, known), origin, (sentence,))
            for texts, origin, sentence in origins
            for text in texts
        ),
    ]
