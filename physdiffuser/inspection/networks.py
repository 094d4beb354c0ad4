"""Which networks are looked at, and what pictures say of where they come from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from physdiffuser.io.display import visible

if TYPE_CHECKING:
    from physdiffuser.models.network import LawModel

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
        "shipped", with the name of a folder below that of its variant, or the folder.
    tables
        Tables seen in training, of which several may be of one law; 0 for random weights.
    digest
        First characters of the SHA-256 sum of the encoder's file (of its blocks, where these have a file of
        their own), "" when there is no file.
    teacher
        Attention of the weights whose memory the encoder was taught to give, "" when it had no teacher.
    lent
        Label of each generator that was trained with another encoder.
    folder
        Where the weights lie, if anywhere.
    """

    model: LawModel
    attention: str
    source: str
    tables: int
    digest: str
    teacher: str = ""
    lent: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None

    @property
    def trained(self) -> bool:
        """Whether the weights have seen a single table."""
        return self.tables > 0

    @property
    def label(self) -> str:
        """What every picture says of the weights."""
        if not self.trained:
            return f"UNTRAINED random weights, {self.attention} attention"
        file = f", encoder {self.digest}" if self.digest else ""
        teacher = f", taught by {self.teacher}" if self.teacher else ""
        return f"weights {self.attention} ({self.source}), {self.tables:,} tables seen{teacher}{file}"

    def label_of(self, generator: str) -> str:
        """What pictures of a generator say: its own weights first, where another encoder lent them."""
        if generator not in self.lent or not self.trained:
            return self.label
        return f"{self.lent[generator]}; encoder: {self.label.removeprefix('weights ')}"


def open_networks(
    attention: str | None = None, weights: str | None = None, parts: Sequence[str] = GENERATORS
) -> Networks:
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
    from physdiffuser.models.checkpoint_files import BLOCKS, DESCRIPTION, read_json
    from physdiffuser.models.shipped import find_weights, weights_folder

    if attention is not None:
        from physdiffuser.plugin_system.manager import load_plugins

        load_plugins().attention(attention)
    folder = find_weights(attention, weights)
    description = read_json(folder / DESCRIPTION)
    listed = description.get("files")
    # A file may lie in another folder: encoders can share generators.
    files = (
        {Path(name).stem: (folder / name, str(total)) for name, total in listed.items()}
        if isinstance(listed, dict)
        else {}
    )
    notes = _notes(description)
    # Everything above answers at once; torch is needed from here on.
    from physdiffuser.models.checkpoint import load_model

    model = load_model(folder, [part for part in parts if part in files])
    return Networks(
        model=model,
        attention=model.config.encoder.attention,
        source=_source(folder, weights_folder()),
        tables=_tables(notes),
        digest=files[BLOCKS if BLOCKS in files else "encoder"][1][:8],
        teacher=visible(str(notes.get("teacher") or ""), 40),
        lent={
            part: _lent(part, *files[part])
            for part in parts
            if part in files and files[part][0].parent != folder
        },
        folder=folder,
    )


def open_others(networks: Networks) -> list[Networks]:
    """Encoders of the same variant with other options, in folders below the weights; no generators."""
    from physdiffuser.models.checkpoint_files import DESCRIPTION

    if networks.folder is None:
        return []
    folders = [path.parent for path in networks.folder.glob(f"*/{DESCRIPTION}")]
    folders.sort(key=lambda folder: (len(folder.name), folder.name))  # slices-8 before slices-16
    others = [open_networks(weights=str(folder), parts=()) for folder in folders]
    return [other for other in others if other.attention == networks.attention]


def _lent(part: str, file: Path, digest: str) -> str:
    """Label of a generator whose file lies in the folder of the weights with which it was trained."""
    from physdiffuser.models.checkpoint_files import DESCRIPTION, read_json

    owner = file.resolve().parent
    tables = _tables(_notes(read_json(owner / DESCRIPTION)))
    return f"weights {_named(owner)}, {tables:,} tables seen, {part} {digest[:8]}"


def _notes(description: dict[str, Any]) -> dict[str, Any]:
    notes = description.get("training")
    return notes if isinstance(notes, dict) else {}


def _tables(notes: dict[str, Any]) -> int:
    tables = notes.get("tables", notes.get("laws", 0))  # the older name of the same number
    return tables if isinstance(tables, int) else 0


def _source(folder: Path, shipped: Path) -> str:
    if shipped not in folder.parents:
        return _named(folder)
    return "shipped" if folder.parent == shipped else f"shipped, {_named(folder)}"


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
