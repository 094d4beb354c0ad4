"""Configuration of networks and training: strict schemas over safe YAML.

Unknown keys, wrong types and values out of range are refused with the place they stand in; nothing is
guessed from text (`5e-4` is a number, `no` is a word).
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from physdiffuser.errors import UsageError
from physdiffuser.io.display import visible
from physdiffuser.io.safe_yaml import load_yaml
from physdiffuser.io.small_files import read_text

MAX_BYTES = 1_000_000
Positive = Annotated[int, Field(gt=0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Level = Annotated[float, Field(gt=0.0, le=1.0)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _tuples(cls, values: Any) -> Any:
        # YAML has lists, not tuples.
        if not isinstance(values, dict):
            return values
        wanted = {name for name, field in cls.model_fields.items() if get_origin(field.annotation) is tuple}
        return {
            key: tuple(value) if key in wanted and isinstance(value, list) else value
            for key, value in values.items()
        }


class EncoderConfig(_Strict):
    """The set encoder; see `physdiffuser.models.encoder.SetEncoder`.

    `rows` of a table are read one by one (the summaries see more of them).
    """

    attention: str = "standard"
    options: dict[str, int | float | bool | str | None] = Field(default_factory=dict)
    layers: Positive = 2
    inducing: Positive = 24
    memory: Positive = 16
    mixing: Annotated[int, Field(ge=0)] = 2
    statistics: bool = True
    values: bool = False
    curves: bool = False
    rows: Positive = 64


class DecoderConfig(_Strict):
    """Size of one generator's network."""

    layers: Positive = 4
    attention: str = "standard"


class DiffusionSampling(_Strict):
    """How masked diffusion writes; see `physdiffuser.generation.diffusion.sampler`.

    Places whose token is as sure as `confidence` are revealed at once, whatever the schedule says, so that
    the number of steps adapts to the formula; with 1 the schedule alone decides.
    """

    steps: Positive = 20
    confidence: Share = 1.0
    temperature: Annotated[float, Field(ge=0.0)] = 1.0
    schedule: Literal["cosine", "linear"] = "cosine"
    reveal: Literal["confidence", "margin", "random"] = "confidence"
    remask: Share = 0.0
    guidance: Annotated[float, Field(ge=0.0)] = 0.0
    windows: tuple[Positive, ...] = (10, 16, 24, 32)


class AutoregressiveSampling(_Strict):
    """How the decoder writes; see `physdiffuser.generation.autoregressive.sampler`.

    `beams` formulas are written by beam search, the rest is sampled: from all tokens, from the `top_k` most
    likely ones (0: all), or from the most likely ones that have a share `nucleus` of the probability.
    """

    temperature: Annotated[float, Field(ge=0.0)] = 1.0
    beams: Annotated[int, Field(ge=0)] = 48
    top_k: Annotated[int, Field(ge=0)] = 0
    nucleus: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0


class ModelConfig(_Strict):
    """The networks. A generator that is null is not built."""

    width: Positive = 192
    heads: Positive = 6
    length: Annotated[int, Field(ge=8, le=256)] = 40
    soft_mask: bool = True
    encoder: EncoderConfig = EncoderConfig()
    diffusion: DecoderConfig | None = DecoderConfig()
    autoregressive: DecoderConfig | None = DecoderConfig()
    diffusion_sampling: DiffusionSampling = DiffusionSampling()
    autoregressive_sampling: AutoregressiveSampling = AutoregressiveSampling()

    @model_validator(mode="after")
    def _check(self) -> ModelConfig:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        if self.diffusion is None and self.autoregressive is None:
            raise ValueError("at least one of diffusion and autoregressive is needed")
        return self


class DataConfig(_Strict):
    """The stream of synthetic laws.

    A share `laboratory` of the laws has few columns and many free constants, as fitted curves have; the
    rest looks like textbook formulas. Of each law `tables` tables are made, with other constants,
    ranges and noise: drawing a law takes most of the time that a table takes. A share `chains` of the
    laws is written as derivations, `physdiffuser.models.tokens.derivation`. A share `handbook` has the
    idioms of handbooks of other fields (`physdiffuser.training.handbook`). Of laws of at most nine tokens
    a share `short_kept` is kept. With `broad`, ranges are of any width and not those of the published
    benchmarks. `noise_models` are drawn from with equal probability
    (`physdiffuser.training.numbers.with_noise`). `laws` is a file of laws drawn beforehand
    (`physdiffuser.training.packed_laws`); a share `fresh_laws` is drawn nevertheless.
    """

    rows: tuple[Positive, Positive] = (48, 256)
    noisy: Share = 0.25
    noise: tuple[Level, Level] = (1e-3, 0.1)
    dummies: Share = 0.1
    laboratory: Share = 0.0
    handbook: Share = 0.0
    short_kept: Share = 1.0
    broad: bool = False
    noise_models: tuple[Literal["even", "relative", "heavy", "outliers", "rounded"], ...] = ("even",)
    laws: str | None = None
    fresh_laws: Share = 0.0
    tables: Positive = 1
    chains: Share = 0.0
    workers: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _check(self) -> DataConfig:
        if self.noise[0] > self.noise[1]:
            raise ValueError(f"noise: the smaller level comes first, not {list(self.noise)}")
        if self.laboratory + self.handbook > 1.0:
            raise ValueError("laboratory and handbook are shares: together they are at most 1")
        if not self.noise_models or not self.short_kept:
            raise ValueError("noise_models needs at least one name, and short_kept a share above 0")
        if self.rows[0] > self.rows[1]:
            raise ValueError(f"rows: the smaller number comes first, not {list(self.rows)}")
        return self


class OptimiserConfig(_Strict):
    """AdamW or Muon, with a linear warm-up and a decay to `final` times the rate.

    The decay is half a cosine over all steps after the warm-up or, with `cooldown`, a straight line over
    that share of the steps at the end: then the number of steps can be changed until that share begins.
    `muon` is for the weights between hidden vectors; AdamW, at the same rate, for all others.
    """

    kind: Literal["adamw", "muon"] = "adamw"
    momentum: Share = 0.95
    cooldown: Share = 0.0
    rate: Annotated[float, Field(gt=0.0, le=1.0)] = 1e-3
    warmup: Annotated[int, Field(ge=0)] = 200
    final: Share = 0.05
    decay: Annotated[float, Field(ge=0.0)] = 0.01
    betas: tuple[Share, Share] = (0.9, 0.98)
    clip: Annotated[float, Field(gt=0.0)] = 1.0
    ema: Share = 0.999


class TrainingConfig(_Strict):
    """Everything `physdiffuser train` needs.

    `start_from` is the folder of an earlier run or of weights, or the name of weights that ship; parameters
    whose names begin with one of `fresh` are not taken from there. Those that begin with one of `frozen`
    stay as they are. With a `teacher` (weights, named as `start_from` is) the encoder learns to give the
    memory that the teacher gives, which takes a fraction of the work; the generators then learn nothing.
    Of a share `hide_summaries` of the tables the encoder's summaries are hidden, so that the rows have to
    be read; validation then tells the losses without them as well (`rows_only`).
    Each law is masked `masks` times a step for the diffusion generator: the encoder's work is shared.
    Windows are lengthened to multiples of `window_step`. With `graphs`, a GPU computes a step in bfloat16 by
    CUDA graphs (`physdiffuser.training.graphs`), one for each length of window and number of rows.
    `precision: auto` is bfloat16 where the processor multiplies in it: where it does not, bfloat16 is an
    order of magnitude slower than single precision.
    """

    out: str
    steps: Positive
    batch: Positive = 256
    micro_batch: Positive = 128
    seed: Annotated[int, Field(ge=0)] = 0
    device: Literal["auto", "cpu", "cuda"] = "auto"
    threads: Annotated[int, Field(ge=0)] = 0
    precision: Literal["auto", "bf16", "fp32"] = "auto"
    graphs: bool = False
    window_step: Positive = 1
    drop_condition: Share = 0.1
    masks: Positive = 1
    hide_summaries: Share = 0.0
    checkpoint_every: Positive = 500
    keep: Positive = 2
    log_every: Positive = 20
    validate_every: Positive = 500
    validation_laws: Positive = 256
    start_from: str | None = None
    fresh: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()
    teacher: str | None = None
    tensorboard: bool = False
    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    optimiser: OptimiserConfig = OptimiserConfig()

    @model_validator(mode="after")
    def _check(self) -> TrainingConfig:
        if self.fresh and self.start_from is None:
            raise ValueError("fresh names what start_from does not give; it needs start_from")
        if self.hide_summaries and not self.model.encoder.statistics:
            raise ValueError("hide_summaries has nothing to hide where the encoder has no statistics")
        if self.batch % self.micro_batch:
            raise ValueError(f"batch {self.batch} is not a multiple of micro_batch {self.micro_batch}")
        return self


def recipes() -> tuple[str, ...]:
    """Names of the recipes that ship with the package."""
    folder = files("physdiffuser") / "configs"
    return tuple(sorted(item.name[:-5] for item in folder.iterdir() if item.name.endswith(".yaml")))


def load_training_config(source: str | Path) -> TrainingConfig:
    """Read a training configuration.

    Parameters
    ----------
    source
        Path of a YAML file, or the name of a recipe that ships (`tiny`, `small`, `base`, `broad`).

    Raises
    ------
    FileError
        If there is no such file.
    UsageError
        If it is not valid YAML or does not follow the schema; every fault is named with its key.
    """
    name = visible(str(source), 200)
    if str(source) in recipes():
        text = (files("physdiffuser") / "configs" / f"{source}.yaml").read_text(encoding="utf-8")
    else:
        hint = f"; give a YAML file or one of the recipes {', '.join(recipes())}"
        text = read_text(Path(source), MAX_BYTES, "a configuration", refused=UsageError, hint=hint)
    return parse_training_config(load_yaml(text, name), name)


def parse_training_config(content: object, name: str) -> TrainingConfig:
    """Check a configuration that was read already; `name` is used in messages.

    Raises
    ------
    UsageError
        Naming every key at fault and what was expected.
    """
    if not isinstance(content, dict):
        raise UsageError(f"{name}: the configuration must be a mapping of keys to values")
    try:
        return TrainingConfig.model_validate(content)
    except ValidationError as error:
        faults = []
        for fault in error.errors():
            where = ".".join(str(part) for part in fault["loc"]) or "configuration"
            faults.append(f"{where}: {fault['msg']}")
        raise UsageError(f"{name}: {'; '.join(faults)}") from error
