# %% [markdown]
# # Attention from scratch
#
# In attention, each element of a sequence or a set is replaced by a weighted mean of all elements, with
# weights computed from the elements themselves. It takes four matrix products and a softmax. This page
# implements it by hand and compares the results, number by number, with `torch.nn.MultiheadAttention` and
# with the variant `standard` of physdiffuser.

# %%
import math

import torch
from torch import nn

torch.manual_seed(0)

# %% [markdown]
# ## One head
#
# Every element is a vector. Three linear maps compute its *query*, its *key* and its *value*. The weight
# of element `j` for element `i` grows with the scalar product of query `i` and key `j`, and the result
# for element `i` is the weighted mean of the values. Dividing the products by the square root of the
# width keeps those of random vectors at the size of one, where the softmax is not yet saturated.


# %%
def attend(query, key, value):
    """query (queries, width), key and value (keys, width); the result and the weights."""
    logits = query @ key.T / math.sqrt(query.shape[-1])
    weights = logits.softmax(dim=-1)
    return weights @ value, weights


elements = torch.randn(5, 8)
mixed, weights = attend(elements, elements, elements)
print("weights of the first element:", [round(w, 3) for w in weights[0].tolist()])
print("each row sums to one:", torch.allclose(weights.sum(-1), torch.ones(5)))

# %% [markdown]
# Without this division the largest product gets nearly all of the weight, the more so the wider the
# vectors are:

# %%
for width in (8, 64, 512):
    a, b = torch.randn(1000, width), torch.randn(1000, width)
    raw, scaled = (a @ b.T).softmax(-1), (a @ b.T / math.sqrt(width)).softmax(-1)
    print(
        f"width {width:3d}: largest of 1000 weights {raw.max(-1).values.mean():.3f}, "
        f"with the root {scaled.max(-1).values.mean():.3f}"
    )

# %% [markdown]
# ## Several heads
#
# One softmax gives one set of weights. With several heads the vectors are cut into parts, each part has
# its own weights, and a last linear map combines the results of the heads.


# %%
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value, self.output = nn.Linear(width, width), nn.Linear(width, width)

    def split(self, x):  # (batch, length, width) -> (batch, heads, length, width / heads)
        batch, length, width = x.shape
        return x.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, x):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(-1)
        mixed = (weights @ v).transpose(1, 2).flatten(2)
        return self.output(mixed), weights


mine = Attention(width=32, heads=4)
x = torch.randn(2, 10, 32)
result, weights = mine(x)
print("result", tuple(result.shape), " weights", tuple(weights.shape))

# %% [markdown]
# ## Against torch
#
# `nn.MultiheadAttention` keeps the three maps in one matrix, queries first. With the same parameters the
# results and the weights agree to rounding.

# %%
theirs = nn.MultiheadAttention(32, 4, batch_first=True)
with torch.no_grad():
    theirs.in_proj_weight.copy_(torch.cat([mine.query.weight, mine.key.weight, mine.value.weight]))
    theirs.in_proj_bias.copy_(torch.cat([mine.query.bias, mine.key.bias, mine.value.bias]))
    theirs.out_proj.load_state_dict(mine.output.state_dict())
expected, expected_weights = theirs(x, x, x, average_attn_weights=False)
difference = (result - expected).abs().max().item()
print(f"largest difference of the results: {difference:.1e}")
assert difference < 1e-5
assert torch.allclose(weights, expected_weights, atol=1e-6)

# %% [markdown]
# ## Against physdiffuser
#
# The variant `standard` has the same four maps under the same names, so the parameters load unchanged.
# Unless the attention weights are asked for, it uses torch's fused kernel, which never stores the whole
# matrix of weights.

# %%
from physdiffuser.models.attention import build_attention, find_attention

standard = build_attention(find_attention("standard"), 32, 4, {})
standard.load_state_dict(mine.state_dict())
with torch.no_grad():
    fused, nothing = standard(x)
    plain, shown = standard(x, need_weights=True)
print(f"fused kernel: {(fused - result).abs().max():.1e}, written out: {(plain - result).abs().max():.1e}")
assert nothing is None
assert torch.allclose(fused, result, atol=1e-5) and torch.allclose(shown, weights, atol=1e-6)

# %% [markdown]
# ## A set has no order
#
# Nothing above depends on the order of the elements: when they are shuffled, the results are shuffled in
# the same way. This suits the rows of a table of measurements, which have no order. Sentences and
# formulas have an order, so position vectors are added to their elements.

# %%
order = torch.randperm(10)
shuffled, _ = mine(x[:, order])
assert torch.allclose(shuffled, result[:, order], atol=1e-5)
print("shuffled rows give shuffled results")

# %% [markdown]
# Next: [masks and cross-attention](masks.md).
