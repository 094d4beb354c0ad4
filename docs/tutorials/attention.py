# %% [markdown]
# # Attention from scratch
#
# Attention lets each element of a sequence or a set look at all others and take from them what it needs. It
# is four matrix products and a softmax. Here it is written once, by hand, and compared number by number
# with `torch.nn.MultiheadAttention` and with the variant `standard` of physdiffuser.

# %%
import math

import torch
from torch import nn

torch.manual_seed(0)

# %% [markdown]
# ## One head
#
# Every element is a vector. Three linear maps make a *query* (what it looks for), a *key* (what it offers)
# and a *value* (what it hands over). The weight of element `j` for element `i` grows with the product of
# query `i` and key `j`. The division by the root of the width keeps the products of random vectors at the
# size of one, where the softmax still has a slope.


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
# Without the root, the largest of the products takes nearly everything, and the more so the wider the
# vectors:

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
# One softmax can look at one kind of thing. With several heads the width is cut into parts, each part has
# its own weights, and a last linear map mixes what the heads brought.


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
# `nn.MultiheadAttention` keeps the three maps in one matrix, queries first. With the same numbers inside,
# the results agree to rounding, weights included.

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
# The variant `standard` has the same four maps under the same names, so the weights load as they are. Where
# nobody asks for the weights it uses torch's fused kernel, which never makes the whole matrix of weights.

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
# Nothing above knows which element came first: shuffle the elements, and the results are shuffled with
# them. That is what a table of measurements needs, whose rows have no order, and it is why sentences and
# formulas need positions.

# %%
order = torch.randperm(10)
shuffled, _ = mine(x[:, order])
assert torch.allclose(shuffled, result[:, order], atol=1e-5)
print("shuffled rows give shuffled results")

# %% [markdown]
# Next: [masks and cross-attention](masks.md).
