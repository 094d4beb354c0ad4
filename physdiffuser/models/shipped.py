"""Finding and loading the weights that ship with the package, or those a user trained."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from physdiffuser.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

    from physdiffuser.models.network import LawModel

DEFAULT = "standard"
VARIABLE = "PHYSDIFFUSER_WEIGHTS"
"""Environment variable with the folder of weights to use instead of the shipped ones."""


def weights_folder() -> Path:
    """Where shipped weights lie, one folder an attention variant."""
    return Path(str(files("physdiffuser") / "weights"))


def shipped() -> tuple[str, ...]:
    """Attention variants for which weights ship with the package."""
    folder = weights_folder()
    if not folder.is_dir():
        return ()
    return tuple(sorted(path.parent.name for path in folder.glob("*/model.json")))


def find_weights(attention: str | None = None, weights: str | None = None) -> Path:
    """Folder of the weights to use.

    Parameters
    ----------
    attention
        Variant inside the encoder; the default one when None.
    weights
        Folder of weights trained by the user; takes precedence, before the one named by the
        environment variable `PHYSDIFFUSER_WEIGHTS`, before those that ship.

    Raises
    ------
    UsageError
        Saying what to do, if there are none.
    """
    weights = weights or os.environ.get(VARIABLE) or None
    if weights is not None:
        folder = Path(weights)
        _check_attention(folder, attention)
        return folder
    name = attention or DEFAULT
    if name not in shipped():
        have = ", ".join(shipped()) or "none"
        raise UsageError(
            f"no weights for the attention {name!r} ship with this version (shipped: {have}); train "
            f"some with 'physdiffuser train small' and name their folder in {VARIABLE}"
        )
    return weights_folder() / name


def _check_attention(folder: Path, attention: str | None) -> None:
    """Refuse weights that were trained with another attention than the one asked for."""
    from physdiffuser.models.checkpoint_files import DESCRIPTION, read_json

    description = read_json(folder / DESCRIPTION)
    config = description.get("config")
    encoder = config.get("encoder") if isinstance(config, dict) else None
    trained = encoder.get("attention") if isinstance(encoder, dict) else None
    if attention is not None and trained != attention:
        raise UsageError(
            f"the weights in '{folder}' were trained with the attention {trained!r}, not {attention!r}; "
            f"leave out --attention, or train weights with it"
        )


def fast_bfloat16(kind: str) -> bool:
    """Whether a kind of device multiplies bfloat16 matrices faster than single-precision ones."""
    import torch

    if kind == "cuda":
        return True
    supported = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return bool(supported is not None and supported())


@contextmanager
def inference_precision(device: torch.device) -> Iterator[None]:
    """Networks run in bfloat16 in this context, where that is several times faster, and on one thread.

    These networks are small: a second thread gains little on an idle machine, and on a busy one the
    threads wait for each other at every layer (20 times slower was measured with four busy processes on
    two cores).
    """
    import torch

    threads = torch.get_num_threads()
    if device.type == "cpu":
        torch.set_num_threads(1)
    try:
        with torch.autocast(device.type, torch.bfloat16, enabled=fast_bfloat16(device.type)):
            yield
    finally:
        if device.type == "cpu":
            torch.set_num_threads(threads)


@lru_cache(maxsize=4)
def load_weights(folder: Path, part: str, device: str) -> LawModel:
    """The encoder and one generator, in the precision they run in, kept for the next call."""
    import torch

    from physdiffuser.models.checkpoint import load_model

    model = load_model(folder, (part,), device)
    return model.to(torch.bfloat16) if fast_bfloat16(device) else model
