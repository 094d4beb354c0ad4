"""One look: the networks are opened, shown a table, and listened to.

Networks run in single precision here, on one thread, whatever `solve` uses on the same machine: a
picture should not depend on the processor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from physdiffuser.arrays import FloatArray, IndexArray
from physdiffuser.core.problem import Problem
from physdiffuser.inspection.capture import Capture, Heard, Place, captured
from physdiffuser.inspection.networks import Networks, quiet_networks
from physdiffuser.inspection.subjects import Subject
from physdiffuser.models.features.reading import Reader, Reading
from physdiffuser.models.tokens.vocabulary import MAX_VARIABLES

if TYPE_CHECKING:
    from torch import Tensor

    from physdiffuser.models.network import LawModel


@dataclass(frozen=True)
class Showing:
    """A table shown to the encoder, and what was heard.

    Attributes
    ----------
    networks, subject, problem, reader, reading
        What was shown, how.
    order
        (rows,) the rows that the encoder read in full, by rising target.
    values
        (rows, columns + 1) these rows in that order, target last, in the table's own units (as half
        precision holds them).
    heard
        The encoder's attention.
    memory, mask
        (1, tokens, width) and (1, tokens), as the encoder returns them.
    """

    networks: Networks
    subject: Subject
    problem: Problem
    reader: Reader
    reading: Reading
    order: IndexArray
    values: FloatArray
    heard: Capture
    memory: Tensor
    mask: Tensor

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns of `values`."""
        return (*self.subject.names, self.subject.target_name)

    @property
    def places(self) -> list[int]:
        """For each input column, its place among the nine."""
        return [self.reading.columns.index(position) for position in range(len(self.reader.chosen))]

    @property
    def keys(self) -> tuple[list[int], list[str]]:
        """Memory tokens that are not masked, and their names."""
        names = [pooled_name(index) for index in range(self.networks.model.config.encoder.memory)]
        if self.networks.model.encoder.statistics:
            names += ["" if column < 0 else self.subject.names[column] for column in self.reading.columns]
            names += ["table"]
        kept = [index for index, name in enumerate(names) if name]
        return kept, [names[index] for index in kept]

    def encoder_weights(self, kind: str) -> FloatArray:
        """Weights of every layer of that kind, (layers, heads, queries, keys), rows in `order`."""
        weights = self.heard.weights("encoder", kind)[:, 0].double().numpy()
        if kind in ("gather", "pooling"):
            weights = weights[..., self.order]
        elif kind == "spread":
            weights = weights[..., self.order, :]
        elif kind == "rows":
            weights = weights[:, :, self.order]
            if not hasattr(self.heard.last(Place("encoder", "rows", 0)).module, "slices"):
                weights = weights[..., self.order]
        return np.asarray(weights, dtype=np.float64)

    @property
    def calls_among_rows(self) -> list[Heard]:
        """The newest call of each layer in which rows attend to rows; empty where the encoder has none."""
        layers = range(len(self.networks.model.encoder.blocks))
        calls = [self.heard.calls.get(Place("encoder", "rows", layer)) for layer in layers]
        return [found[-1] for found in calls if found]

    def has(self, kind: str) -> bool:
        """Whether the encoder has attention of that kind whose weights can be seen."""
        return self.heard.has("encoder", kind)


def pooled_name(index: int) -> str:
    """What pictures call a pooled memory vector: no name that a column is likely to have."""
    return f"#{index + 1}"


def show(networks: Networks, subject: Subject, seed: int = 0) -> Showing:
    """Show a table to the encoder as `solve` would, once, and listen."""
    problem = Problem(
        inputs=subject.inputs,
        target=subject.target,
        names=tuple(f"x{index + 1}" for index in range(subject.inputs.shape[1])),
        seed=seed,
    )
    reader = Reader(problem)
    reading = reader.read(problem.generator(31))
    near = reading.rows[: networks.model.config.encoder.rows]
    order = np.argsort(near[:, MAX_VARIABLES].astype(np.float64), kind="stable")
    with quiet_networks(), captured(networks.model) as heard:
        memory, mask = encode(networks.model, reading)
    places = [reading.columns.index(position) for position in range(len(reader.chosen))]
    scaled = near[np.ix_(order, np.array([*places, MAX_VARIABLES]))].astype(np.float64)
    values = np.ldexp(scaled, np.array([*reader.scaling.inputs, reader.scaling.target], dtype=np.int32))
    return Showing(networks, subject, problem, reader, reading, order, values, heard, memory, mask)


def encode(model: LawModel, reading: Reading, rows: npt.NDArray[np.float16] | None = None) -> tuple[Any, Any]:
    """Memory and mask of one reading; with other `rows` for the encoder, if given."""
    import torch

    every = torch.from_numpy(reading.rows)[None]
    near = every[:, : model.config.encoder.rows] if rows is None else torch.from_numpy(rows)[None]
    nowhere = torch.zeros(every.shape[:2], dtype=torch.bool)
    used = torch.from_numpy(reading.used)[None]
    return model.encode(near, nowhere[:, : near.shape[1]], used, every, nowhere)
