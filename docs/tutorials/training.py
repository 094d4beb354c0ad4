# %% [markdown]
# # Training a small model
#
# The learned generators are trained on laws that are generated during training: a random formula with
# random ranges, rows and noise. The network reads the rows and must write the formula. This page shortens
# the recipe `tiny` to a few seconds to show the parts. This is far too short to learn physics.

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
# A configuration is checked before anything starts. A misspelt key is an error that names it:

# %%
from physdiffuser.errors import UsageError

try:
    parse_training_config(settings | {"stepz": 40}, "this page")
except UsageError as error:
    print(error)
else:
    raise AssertionError("an unknown key must be refused")

# %% [markdown]
# ## The training laws
#
# The stream of laws depends only on the seed and the step, so a run that was stopped continues with the
# same laws. Laws of the benchmarks are recognised by their values and left out. The formulas to be
# written contain no fitted numbers: `c1`, `c2`, ... stand for constants that are fitted afterwards.

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
# Both generators and their encoder are trained together. On the command line this is `physdiffuser train
# tiny --out FOLDER`.

# %%
from physdiffuser.training.loop import Trainer

torch.manual_seed(0)
trainer = Trainer(config)
trainer.run()
records = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
train = [record for record in records if record["kind"] == "train"]
print({name: round(value, 3) for name, value in train[-1].items() if isinstance(value, float)})

# %% [markdown]
# The loss is the cross-entropy of the tokens of the formula. Within forty steps the networks learn the
# grammar of formulas, but not yet how to infer a formula from the rows.

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
# ## Checkpoints and the model
#
# Checkpoints hold everything that is needed to continue with bit-identical results. The model is a folder
# of safetensors and JSON files; reading it cannot run code.

# %%
for path in sorted((folder / "run").rglob("*")):
    if path.is_file():
        print(f"{path.relative_to(folder)}  {path.stat().st_size // 1000} kB")

# %%
from physdiffuser.models.checkpoint import load_model

model = load_model(folder / "run" / "model")
print(f"{sum(parameter.numel() for parameter in model.parameters()):,} parameters")

# %% [markdown]
# [Training](../training.md) describes full training runs and what their weights recover.
