"""Tables drawn from a law, the same to the last bit for the same seed.

The input columns come from the raw 64-bit output of numpy's PCG64, whose stream numpy guarantees, turned into
doubles here: they do not depend on the numpy version. Rows are drawn one after another, so a longer table
starts with the shorter one. The noise has a stream of its own: the same rows with and without noise.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from benchmarks_feynman.suites import MEASURED, Law, LawVariable
from physdiffuser.arrays import FloatArray
from physdiffuser.expressions import evaluate

DUMMY_RANGE = (1.0, 5.0)
_OUTLIER_SIGMAS = 10.0
_MAX_DRAWS = 50


@dataclass(frozen=True)
class Table:
    """Rows drawn from a law.

    Attributes
    ----------
    names
        Columns of `inputs`: the law's variables, then columns it does not need.
    output
        Name of the target column.
    inputs
        Shape (rows, columns).
    target
        Shape (rows,): with noise and outliers.
    clean
        Shape (rows,): what the law gives.
    """

    names: tuple[str, ...]
    output: str
    inputs: FloatArray
    target: FloatArray
    clean: FloatArray

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.target.shape[0])


def dummy_names(law: Law, count: int) -> tuple[str, ...]:
    """Names for columns the law does not need, none of them taken."""
    taken = {*law.names, law.output}
    names = (f"extra{number}" for number in range(1, count + len(taken) + 1))
    return tuple(name for name in names if name not in taken)[:count]


def columns(law: Law, dummy: int) -> tuple[LawVariable, ...]:
    """The table's columns with their ranges: the law's variables, then the ones not needed."""
    extra = tuple(LawVariable(name, *DUMMY_RANGE, unit="1") for name in dummy_names(law, dummy))
    return law.variables + extra


def bits(law: Law, seed: int, stream: str) -> np.random.PCG64:
    """The random bits of one stream of one law; equal arguments give equal bits."""
    place = zlib.crc32(f"{law.suite}/{law.id}/{stream}".encode())
    return np.random.PCG64(np.random.SeedSequence([seed, place]))


def draw(variables: tuple[LawVariable, ...], source: np.random.PCG64, rows: int) -> FloatArray:
    """Rows within the ranges, shape (rows, variables)."""
    raw = np.asarray(source.random_raw(rows * len(variables)), dtype=np.uint64)
    unit = (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53
    unit = unit.reshape(rows, len(variables))
    table = np.empty_like(unit)
    for index, variable in enumerate(variables):
        if variable.scale == "log":
            table[:, index] = variable.low * (variable.high / variable.low) ** unit[:, index]
        else:
            table[:, index] = variable.low + (variable.high - variable.low) * unit[:, index]
    return table


def draw_valid(
    law: Law, variables: tuple[LawVariable, ...], source: np.random.PCG64, rows: int
) -> tuple[FloatArray, FloatArray]:
    """Rows where the law is finite, and its values there; fewer rows if they are too hard to find."""
    inputs = np.empty((0, len(variables)))
    clean = np.empty(0)
    for _ in range(_MAX_DRAWS):
        more = draw(variables, source, rows)
        value = evaluate(law.expression, more)
        keep = np.isfinite(value)
        inputs = np.concatenate([inputs, more[keep]])
        clean = np.concatenate([clean, value[keep]])
        if len(clean) >= rows:
            break
    return inputs[:rows], clean[:rows]


def sample(
    law: Law, *, rows: int, seed: int = 0, noise: float = 0.0, dummy: int = 0, stream: str = "train"
) -> Table:
    """A table for one law.

    Parameters
    ----------
    law
        The law. Its own `outliers` and `relative_noise` are applied to the `train` stream.
    rows
        Number of rows.
    seed
        Any non-negative integer.
    noise
        Sigma of the added Gaussian noise relative to the root mean square of the target (SRBench's
        definition, La Cava et al. 2021).
    dummy
        Number of columns added that the law does not need, uniform in [1, 5].
    stream
        `train`, or another name for an independent draw, which stays clean.

    Returns
    -------
    Table
        Equal to the bit for equal arguments. A law of the suite `measured` has one table, whatever the
        other arguments.
    """
    if law.suite == MEASURED:
        return _measured(law)
    variables = columns(law, dummy)
    inputs, clean = draw_valid(law, variables, bits(law, seed, stream), rows)
    if len(clean) < rows:
        raise RuntimeError(f"{law.suite} {law.id}: the law is undefined in most of its ranges")
    target = clean
    if stream == "train":
        target = _disturb(law, clean, noise, np.random.Generator(bits(law, seed, "noise")))
    return Table(tuple(variable.name for variable in variables), law.output, inputs, target, clean)


def _measured(law: Law) -> Table:
    from benchmarks_feynman.measured_tables import measured_table

    table = measured_table(law.id)
    return Table(table.names, table.target_name, table.inputs, table.target, table.target)


def _disturb(law: Law, clean: FloatArray, noise: float, random: np.random.Generator) -> FloatArray:
    target = clean.copy()
    if noise:
        target += noise * float(np.sqrt(np.mean(clean**2))) * random.standard_normal(len(clean))
    if law.relative_noise:
        target *= 1.0 + law.relative_noise * random.standard_normal(len(clean))
    if law.outliers:
        count = max(1, round(law.outliers * len(clean)))
        rows = random.choice(len(clean), size=count, replace=False)
        size = _OUTLIER_SIGMAS * float(np.std(clean))
        target[rows] += size * random.standard_normal(count)
    return target
