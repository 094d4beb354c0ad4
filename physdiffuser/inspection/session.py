"""One look: the networks are opened, shown a table, and listened to.

Networks run in single precision here, on one thread, whatever `solve` uses on the same machine: a
picture should not depend on the processor.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from physdiffuser.data.display import visible
from physdiffuser.inspection.capture import Capture, Place, captured
from physdiffuser.inspection.subjects import Subject
from physdiffuser.models.reading import Reader, Reading
from physdiffuser.models.vocabulary import MAX_VARIABLES
from physdiffuser.search.problem import Problem

if TYPE_CHECKING:
    from torch import Tensor

    from physdiffuser.models.network import LawModel

FloatArray = npt.NDArray[np.float64]

GENERATORS = ("diffusion", "autoregressive")


@dataclass(frozen=True)
class Networks:
    """Trained networks and where they come from.

    Attributes
    ----------
    model
        In evaluation mode, single precision.
    attention
        Variant inside the encoder.
    source
        "shipped", or the folder.
    laws
        Laws seen in training; 0 for random weights.
    digest
        First characters of the SHA-256 sum of the encoder's file, "" when there is no file.
    teacher
        Attention of the weights whose memory the encoder was taught to give, "" when it had no teacher.
    """

    model: LawModel
    attention: str
    source: str
    laws: int
    digest: str
    teacher: str = ""

    @property
    def trained(self) -> bool:
        """Whether the weights have seen a single law."""
        return self.laws > 0

    @property
    def label(self) -> str:
        """What every picture says of the weights."""
        if not self.trained:
            return f"UNTRAINED random weights, {self.attention} attention"
        file = f", encoder {self.digest}" if self.digest else ""
        teacher = f", taught by {self.teacher}" if self.teacher else ""
        return f"weights {self.attention} ({self.source}), {self.laws:,} laws seen{teacher}{file}"


def open_networks(attention: str | None = None, weights: str | None = None) -> Networks:
    """The weights that `solve` would use, with every generator they hold.

    Parameters
    ----------
    attention
        Variant inside the encoder; the default one when None.
    weights
        Folder; see `physdiffuser.models.shipped.find_weights`.

    Raises
    ------
    PluginError
        If no attention variant has that name.
    UsageError
        If there are no weights for it.
    FileError
        If they are missing or damaged.
    """
    from physdiffuser.models.checkpoint_files import DESCRIPTION, read_json
    from physdiffuser.models.shipped import find_weights, weights_folder

    if attention is not None:
        from physdiffuser.plugin_manager import load_plugins

        load_plugins().attention(attention)
    folder = find_weights(attention, weights)
    description = read_json(folder / DESCRIPTION)
    listed = description.get("files")
    # A file may lie in another folder: encoders can share generators.
    files = (
        {Path(name).stem: str(total) for name, total in listed.items()} if isinstance(listed, dict) else {}
    )
    notes = description.get("training")
    notes = notes if isinstance(notes, dict) else {}
    laws = notes.get("laws", 0)
    # Everything above answers at once; torch is needed from here on.
    from physdiffuser.models.checkpoint import load_model

    model = load_model(folder, [part for part in GENERATORS if part in files])
    return Networks(
        model=model,
        attention=model.config.encoder.attention,
        source="shipped" if folder.parent == weights_folder() else _named(folder),
        laws=laws if isinstance(laws, int) else 0,
        digest=files.get("encoder", "")[:8],
        teacher=visible(str(notes.get("teacher") or ""), 40),
    )


def _named(folder: Path) -> str:
    return visible(os.path.basename(os.path.abspath(folder)), 40)


def random_networks(like: Networks, seed: int = 0) -> Networks:
    """Networks of the same make with random weights: what training did not do."""
    import torch

    from physdiffuser.models.network import LawModel

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LawModel(like.model.config, like.model.vocabulary)
    model.eval().requires_grad_(False)
    return Networks(model, like.attention, "random", 0, "")


@contextmanager
def quiet_networks() -> Iterator[None]:
    """No gradients, one thread."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            yield
    finally:
        torch.set_num_threads(threads)


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
    order: npt.NDArray[np.intp]
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
        names = [f"m{index + 1}" for index in range(self.networks.model.config.encoder.memory)]
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

    def has(self, kind: str) -> bool:
        """Whether the encoder has attention of that kind whose weights can be seen."""
        return self.heard.has("encoder", kind)


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
