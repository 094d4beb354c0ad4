# %% [markdown]
# # Writing an attention plugin
#
# An attention variant is a package of your own. Training, checkpoints and the command line find it by its
# entry point, as they find those that ship. This page writes one whose logits are *cosines*: queries and
# keys are brought to length one, so no logit can run away, and each head learns how sharply it looks.

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
# That is a complete package: `pip install -e` it, run its test, and the variant is there. The entry point
# is one line:

# %%
print((package / "pyproject.toml").read_text())

# %% [markdown]
# The module stays light, since it is imported whenever a search starts; torch is imported when the network
# is built. `supports` is a promise. A variant is never asked for what it does not declare.

# %%
module = next(package.glob("*/__init__.py"))
print(module.read_text())

# %% [markdown]
# ## The network
#
# The file that came with the package has scaled dot products. Two lines make them cosines. The rest of the
# contract stays: padded keys get minus infinity before the softmax, weights come back only when asked for.

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
# `check_attention` builds the variant and tries what it declares: shapes, gradients, order of the rows,
# padding, weights that are those of the output, storage, half precision, and that what is not declared is
# refused. It says what it has checked.

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
# Here is the mistake that is made most often: the padding mask is forgotten. Nothing fails and the loss
# falls, but each table's answer depends on how long the other tables of its batch are. The check says so.

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
# The configuration of a training run names it: `attention: cosine` under `model` (see
# [Training](../training.md)), and `physdiffuser solve --attention cosine` uses weights that were trained
# with it. Here it stands in an encoder, by itself:

# %%
import torch

from physdiffuser.models.attention import build_attention

attention = build_attention(spec, 64, 4, {"temperature": 0.5})
output, weights = attention(torch.randn(2, 20, 64), torch.randn(2, 7, 64), need_weights=True)
print("output", tuple(output.shape), " weights", tuple(weights.shape))
assert torch.allclose(weights.sum(-1), torch.ones(2, 4, 20), atol=1e-5)
