"""Weights on disk: safetensors and a JSON description with SHA-256 sums. Nothing is unpickled.

A folder holds `model.json` and one or more `.safetensors` files. The description names the vocabulary,
the configuration and the attention plugins, so that a missing package is named and not guessed at. A file may
also lie in another folder (`../standard/diffusion.safetensors`): encoders that were taught to give the same
memory share their generators. A file `blocks.safetensors` takes the place of some of the encoder's tensors:
encoders that differ in their blocks alone share the rest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from physdiffuser.config import ModelConfig
from physdiffuser.errors import FileError, PluginError, UsageError
from physdiffuser.io.atomic import write_bytes_atomic, write_text_atomic
from physdiffuser.models.attention import find_attention
from physdiffuser.models.checkpoint_files import BLOCKS, DESCRIPTION, read_json, read_regular
from physdiffuser.models.network import LawModel
from physdiffuser.models.tokens.vocabulary import Vocabulary
from physdiffuser.plugin_system.manager import load_plugins

FORMAT = 1
PARTS = ("encoder", "diffusion", "autoregressive")
_PREFIXES = {"denoiser.": "diffusion", "decoder.": "autoregressive"}


def sha256(data: bytes) -> str:
    """Hexadecimal SHA-256 sum."""
    return hashlib.sha256(data).hexdigest()


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> str:
    """Write tensors as safetensors in one step; returns the SHA-256 sum of the file."""
    data = save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
    write_bytes_atomic(path, data)
    return sha256(data)


def read_tensors(path: Path, expected: str, description: Path | None = None) -> dict[str, Tensor]:
    """Read a safetensors file whose SHA-256 sum must be `expected`.

    Parameters
    ----------
    description
        The file that states the sum, for the message; the description of a model when None.

    Raises
    ------
    FileError
        If the file is missing, unreadable, or not the one described.
    """
    data = read_regular(path, "the weights ")
    if sha256(data) != expected:
        named, advice = (
            (f"'{description}'", "") if description else (DESCRIPTION, "; install or train them again")
        )
        raise FileError(
            f"the weights '{path}' are damaged: their SHA-256 sum is not the one in {named}{advice}"
        )
    try:
        return load(data)
    except SafetensorError as error:
        raise FileError(f"the weights '{path}' are not a safetensors file: {error}") from error


def attention_plugins(config: ModelConfig) -> dict[str, dict[str, str]]:
    """Package and version that provide each attention variant of a configuration."""
    names = {config.encoder.attention, "standard"}
    names |= {part.attention for part in (config.diffusion, config.autoregressive) if part is not None}
    registered = load_plugins().attentions
    return {
        name: {"package": registered[name].origin.package, "version": registered[name].origin.version}
        for name in sorted(names)
    }


def part_of(name: str) -> str:
    """Which file a parameter belongs to: one of `PARTS`."""
    return next((part for prefix, part in _PREFIXES.items() if name.startswith(prefix)), "encoder")


def save_model(
    folder: Path,
    config: ModelConfig,
    vocabulary: Vocabulary,
    tensors: Mapping[str, Tensor],
    notes: Mapping[str, Any],
    inside: str = "",
) -> None:
    """Write weights as bfloat16, one file for the encoder and one for each generator.

    The description is written last. With another name `inside` for each save, an earlier model in the same
    folder stays complete until the description of the new one takes its place.

    Parameters
    ----------
    folder
        Made if it does not exist.
    config, vocabulary
        Of the model.
    tensors
        Its parameters by name.
    notes
        What it was trained on, for readers.
    inside
        Name of a folder in `folder` that takes the tensors; `folder` itself when empty.
    """
    (folder / inside).mkdir(parents=True, exist_ok=True)
    sums: dict[str, str] = {}
    for part in PARTS:
        chosen = {
            name: tensor.to(torch.bfloat16) for name, tensor in tensors.items() if part_of(name) == part
        }
        if chosen:
            name = Path(inside, f"{part}.safetensors").as_posix()
            sums[name] = write_tensors(folder / name, chosen)
    description = {
        "format": FORMAT,
        "config": config.model_dump(mode="json"),
        "vocabulary": list(vocabulary.tokens),
        "attention": attention_plugins(config),
        "files": sums,
        "training": dict(notes),
    }
    write_text_atomic(folder / DESCRIPTION, json.dumps(description, indent=2) + "\n")


def load_model(folder: Path, parts: Iterable[str] = PARTS, device: str = "cpu") -> LawModel:
    """Read a model, with the encoder and the generators asked for.

    Raises
    ------
    FileError
        If files are missing or damaged.
    PluginError
        If the package of an attention variant is not installed; the message names it.
    UsageError
        If a generator is asked for that these weights do not hold.
    """
    description = read_json(folder / DESCRIPTION)
    if description.get("format") != FORMAT:
        raise FileError(
            f"'{folder / DESCRIPTION}' has format {description.get('format')!r}; this version reads {FORMAT}"
        )
    try:
        config = ModelConfig.model_validate_json(json.dumps(description["config"]))
        vocabulary = Vocabulary(tuple(str(token) for token in description["vocabulary"]))
        files = {Path(name).stem: (folder / name, str(total)) for name, total in description["files"].items()}
        needed = {str(name): dict(entry) for name, entry in description["attention"].items()}
    except (KeyError, TypeError, ValueError, AttributeError, ValidationError) as error:
        raise FileError(f"'{folder / DESCRIPTION}' does not describe a model: {error}") from error
    for name, entry in needed.items():
        try:
            find_attention(name)
        except PluginError as error:
            raise PluginError(
                f"the weights in '{folder}' need the attention {name!r} of the package "
                f"{entry.get('package')} {entry.get('version')}: {error}"
            ) from error
    wanted = {"encoder", *parts}
    if "encoder" not in files:
        raise FileError(f"'{folder / DESCRIPTION}' does not describe a model: it names no encoder")
    for part in wanted - {"encoder"}:
        if part not in files:
            raise UsageError(
                f"the weights in '{folder}' hold no {part} generator; train one with its section"
            )
    config = config.model_copy(
        update={part: None for part in ("diffusion", "autoregressive") if part not in wanted}
    )
    # On the meta device, which has no numbers to draw, this would import torch._dynamo: 1.2 s for 0.1 s.
    with torch.random.fork_rng(devices=()):
        model = LawModel(config, vocabulary)
    tensors: dict[str, Tensor] = {}
    for part in sorted(wanted):
        tensors |= read_tensors(*files[part])
    if BLOCKS in files:
        # What the blocks take the place of may have tensors that they have not.
        known = model.state_dict()
        tensors = {name: tensor for name, tensor in tensors.items() if name in known}
        tensors |= read_tensors(*files[BLOCKS])
    tensors = {name: tensor.to(device=device, dtype=torch.float32) for name, tensor in tensors.items()}
    try:
        model.load_state_dict(tensors, strict=True, assign=True)
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:300]
        raise FileError(f"the weights in '{folder}' do not fit their description: {reason}") from error
    return model.eval().requires_grad_(False)
