# %% [markdown]
# # Training a small model
#
# The learned generators are trained on laws that are made up as the training runs: a random formula, random
# ranges, rows, noise; the network reads the rows and must write the formula. This page cuts the recipe
# `tiny` down to a few seconds, to show the parts. It is far too short to learn physics.

# %%
import json
import tempfile
from pathlib import Path

import torch
from matplotlib import pyplot as plt

from physdiffuser.config import parse_training_config

folder = Path(tempfile.mkdtemp())
settings = {
    "out": str(folder / "run"),
    "steps": 40,
    "batch": 16,
    "micro_batch": 16,
    "device": "cpu",
    "threads": 1,
    "checkpoint_every": 20,
    "log_every": 1,
    "validate_every": 40,
    "validation_laws": 16,
    "data": {"rows": [16, 24]},
    "model": {
        "width": 32,
        "heads": 2,
        "length": 24,
        "encoder": {"rows": 16, "layers": 1, "inducing": 4, "mixing": 1},
        "diffusion": {"layers": 1},
        "autoregressive": {"layers": 1},
    },
    "optimiser": {"rate": 3e-3, "warmup": 5},
}
config = parse_training_config(settings, "this page")

# %% [markdown]
# A configuration is checked before anything starts: a name that is misspelt is refused by its
# name.

# %%
from physdiffuser.errors import UsageError

try:
    parse_training_config(settings | {"stepz": 40}, "this page")
except UsageError as error:
    print(error)
else:
    raise AssertionError("an unknown key must be refused")

# %% [markdown]
# ## What it learns from
#
# Laws come from a stream that is a function of the seed and the step, so a run that was stopped goes on
# with the same ones. Laws of the benchmarks are recognised by their values and left out. What is to be
# written has no fitted numbers in it: `c1`, `c2`, ... stand for constants that fitting finds afterwards.

# %%
import random

from physdiffuser.expressions import to_text
from physdiffuser.training.laws import LawSampler
from physdiffuser.training.stream import target_skeleton

sampler = LawSampler(random.Random(0))
for _ in range(6):
    print(to_text(target_skeleton(sampler.sample())))

# %% [markdown]
# ## The loop
#
# Both generators and their encoder are trained at once. On the command line: `physdiffuser train tiny --out
# FOLDER`.

# %%
from physdiffuser.training.loop import Trainer

torch.manual_seed(0)
trainer = Trainer(config)
trainer.run()
records = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
train = [record for record in records if record["kind"] == "train"]
print({name: round(value, 3) for name, value in train[-1].items() if isinstance(value, float)})

# %% [markdown]
# The loss is that of the tokens of the formula. Within forty steps the networks learn what formulas look
# like, not yet which one the rows ask for.

# %%
figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
for name in ("autoregressive", "diffusion"):
    axis.plot([record[name] for record in train], label=name)
axis.set(xlabel="step", ylabel="loss")
axis.legend(frameon=False)
for name in ("autoregressive", "diffusion"):
    early, late = (sum(record[name] for record in part) / 8 for part in (train[:8], train[-8:]))
    print(f"{name}: {early:.2f} over the first eight steps, {late:.2f} over the last")
    assert late < early

# %% [markdown]
# ## What is left
#
# Checkpoints hold everything that is needed to go on, to the bit; the model is a folder of safetensors and
# JSON, without anything that could run code when it is read.

# %%
for path in sorted((folder / "run").rglob("*")):
    if path.is_file():
        print(f"{path.relative_to(folder)}  {path.stat().st_size // 1000} kB")

# %%
from physdiffuser.models.checkpoint import load_model

model = load_model(folder / "run" / "model")
print(f"{sum(parameter.numel() for parameter in model.parameters()):,} parameters")

# %% [markdown]
# What a serious training takes, and what its weights recover, is in [Training](../training.md).
