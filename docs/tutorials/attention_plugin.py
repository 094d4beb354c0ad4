# %% [markdown]
# # Writing an attention plugin
#
# An attention variant is a package of your own. Training, checkpoints and the command line find it by its
# entry point, as they find those that ship. This page writes a variant whose logits are *cosines*:
# queries and keys are normalised to length one, which bounds the logits, and each head learns a scale for
# them.

# %%
import subprocess
import sys
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())
command = [sys.executable, "-m", "physdiffuser", "plugins", "new", "cosine", "--kind", "attention"]
done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
package = next(folder.iterdir())
for path in sorted(package.rglob("*")):
    if path.is_file():
        print(path.relative_to(folder))

# %% [markdown]
# This is a complete package. Once it is installed with `pip`, the variant can be used. The entry point is
# one line:

# %%
print((package / "pyproject.toml").read_text())

# %% [markdown]
# The module must import quickly, because every search imports it; it imports torch only when a network is
# built. `supports` lists what the variant can do. It is never used for anything else.

# %%
module = next(package.glob("*/__init__.py"))
print(module.read_text())

# %% [markdown]
# ## The network
#
# The file that came with the package computes scaled dot products. Two lines turn these into cosines. The
# rest of the contract is unchanged: padded keys get minus infinity before the softmax, and weights are
# returned only when asked for.

# %%
network = module.with_name("attention.py")
text = network.read_text()
old = """        logits = self._split(self.query(query)) @ keys.transpose(-2, -1) / math.sqrt(keys.shape[-1])
"""
new = """        queries = nn.functional.normalize(self._split(self.query(query)), dim=-1)
        logits = 8.0 * queries @ nn.functional.normalize(keys, dim=-1).transpose(-2, -1)
"""
assert old in text
network.write_text(text.replace(old, new))

# %% [markdown]
# ## The contract
#
# `check_attention` builds the variant and tests what it declares: shapes, gradients, order of the rows,
# padding, that the returned weights are those of the output, storage, half precision, and that everything
# not declared is refused. It returns what it has checked.

# %%
sys.path.insert(0, str(package))
import importlib

from physdiffuser.testing import check_attention

plugin = importlib.import_module(module.parent.name)
(spec,) = plugin.physdiffuser_attentions()
for line in check_attention(spec):
    print("-", line)

# %% [markdown]
# ## When it is wrong
#
# The most common mistake is to forget the padding mask. Nothing fails and the loss falls, but the answer
# for a table depends on the length of the other tables in its batch. The check reports it.

# %%
import dataclasses


def forgetful(width, heads, **options):
    network = spec.build(width, heads, **options)
    forward = network.forward

    def without_mask(query, memory=None, *, padding_mask=None, **named):
        return forward(query, memory, **named)

    network.forward = without_mask
    return network


try:
    check_attention(dataclasses.replace(spec, build=forgetful))
except AssertionError as error:
    print("refused:", error)
else:
    raise RuntimeError("a forgotten mask must be found")

# %% [markdown]
# ## In a network
#
# The variant alone, as the encoder builds it:

# %%
import torch

from physdiffuser.models.attention import build_attention

attention = build_attention(spec, 64, 4, {"temperature": 0.5})
output, weights = attention(torch.randn(2, 20, 64), torch.randn(2, 7, 64), need_weights=True)
print("output", tuple(output.shape), " weights", tuple(weights.shape))
assert torch.allclose(weights.sum(-1), torch.ones(2, 4, 20), atol=1e-5)

# %% [markdown]
# ## Training with it
#
# Other programs find the variant once its package is installed. Outside a tutorial this is
# `pip install -e physdiffuser-cosine`; here it goes into a folder of its own.

# %%
import os

installed = folder / "installed"
install = ["-m", "pip", "install", "--quiet", "--no-deps", "--target", str(installed), str(package)]
subprocess.run([sys.executable, *install], check=True)
paths = [str(installed), os.environ.get("PYTHONPATH", "")]
environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}

# %% [markdown]
# The configuration of a training run names the variant at `model.encoder.attention`. This one is so small
# that it ends in seconds and learns nothing; [Training](../training.md) has sizes that do.

# %%
configuration = """
out: run
steps: 4
batch: 8
micro_batch: 8
device: cpu
validation_laws: 8
data: {rows: [16, 24]}
model:
  width: 32
  heads: 2
  encoder: {attention: cosine, rows: 16, layers: 1, inducing: 4, mixing: 1}
  diffusion: null
  autoregressive: {layers: 1}
"""
(folder / "cosine.yaml").write_text(configuration)
train = [sys.executable, "-m", "physdiffuser", "train", "cosine.yaml", "--quiet"]
subprocess.run(train, cwd=folder, env=environment, check=True)
print(sorted(path.name for path in (folder / "run" / "model").iterdir()))

# %% [markdown]
# `solve` uses these weights when `PHYSDIFFUSER_WEIGHTS` names their folder. The checkpoint holds the name of
# the plugin and its version; without the package, loading says which one is missing.

# %%
import json

rows = ["t,s"] + [f"{t / 10},{4.905 * (t / 10) ** 2:.17g}" for t in range(1, 41)]
(folder / "fall.csv").write_text("\n".join(rows) + "\n")
solve = [sys.executable, "-m", "physdiffuser", "solve", "fall.csv", "--steps", "10", "--json", "--quiet"]
solve += ["--generators", "enumeration,autoregressive", "--attention", "cosine"]
weights_folder = {"PHYSDIFFUSER_WEIGHTS": str(folder / "run" / "model")}
done = subprocess.run(
    solve, cwd=folder, env=environment | weights_folder, capture_output=True, text=True, check=True
)
print(json.loads(done.stdout)["best"]["expression"])
