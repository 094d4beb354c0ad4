# %% [markdown]
# # Masks and cross-attention
#
# A mask says who must not be seen. It is added to the logits before the softmax: minus infinity there is a
# weight of zero, and the other weights still sum to one. Three uses, each with the check that catches it
# when it is wrong.

# %%
import torch
from matplotlib import pyplot as plt

from physdiffuser.models.attention import KeyValueCache, build_attention, find_attention

torch.manual_seed(0)
attention = build_attention(find_attention("standard"), 32, 4, {}).eval()

# %% [markdown]
# ## Padding
#
# Tables of different lengths share a batch, filled up with rows that mean nothing. `padding_mask` is True
# there. The check: put anything into the padded rows, and nothing may change.

# %%
rows = torch.randn(1, 6, 32)
padding = torch.tensor([[False, False, False, False, True, True]])
with torch.no_grad():
    before, weights = attention(rows, padding_mask=padding, need_weights=True)
    spoiled = rows.clone()
    spoiled[:, 4:] = 1e4
    after, _ = attention(spoiled, padding_mask=padding)
    alone, _ = attention(rows[:, :4])
print("weight on padded rows:", weights[..., 4:].sum().item())
print(f"change when they are spoiled: {(before - after)[:, :4].abs().max():.1e}")
print(f"change when they are left out: {(before[:, :4] - alone).abs().max():.1e}")
assert torch.allclose(before[:, :4], after[:, :4], atol=1e-6)
assert torch.allclose(before[:, :4], alone, atol=1e-6)

# %% [markdown]
# A common mistake is to mask after the softmax: the weights that are left then no longer sum to one, and a
# table's result depends on how much padding its neighbours in the batch made necessary.

# %%
with torch.no_grad():
    _, unmasked = attention(rows, need_weights=True)
    wrong = unmasked.masked_fill(padding[:, None, None, :], 0.0)
print(f"sum of the weights, masked before: {weights.sum(-1).mean():.3f}, after: {wrong.sum(-1).mean():.3f}")
assert wrong.sum(-1).max() < 0.95

# %% [markdown]
# ## Causal
#
# A formula that is written from left to right must not see what it has not written yet. Position `i` may
# look at positions up to `i`: the weights are a lower triangle. The check: change the future, and the past
# must not move.

# %%
tokens = torch.randn(1, 8, 32)
with torch.no_grad():
    first, triangle = attention(tokens, causal=True, need_weights=True)
    changed = tokens.clone()
    changed[:, 5:] = torch.randn(1, 3, 32)
    second, _ = attention(changed, causal=True)
assert torch.equal(triangle.triu(1), torch.zeros_like(triangle))
assert torch.allclose(first[:, :5], second[:, :5], atol=1e-6)

figure, axes = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
for axis, shown, title in zip(axes, (weights, triangle), ("padding", "causal"), strict=True):
    picture = axis.imshow(shown[0, 0], cmap="viridis", vmin=0)
    axis.set(title=title, xlabel="seen (key)", ylabel="looking (query)")
    figure.colorbar(picture, ax=axis)

# %% [markdown]
# Since the past does not move, its keys and values need not be made again for every new token. A cache
# keeps them, and one token at a time gives what the whole sequence gives at once:

# %%
cache = KeyValueCache()
with torch.no_grad():
    steps = [attention(tokens[:, i : i + 1], causal=True, cache=cache)[0] for i in range(8)]
assert torch.allclose(torch.cat(steps, dim=1), first, atol=1e-5)
print("with a cache, token by token:", f"{(torch.cat(steps, dim=1) - first).abs().max():.1e}")

# %% [markdown]
# ## Cross-attention
#
# Queries and keys may come from different places: a formula (8 tokens) looks at the summary of a table (3
# vectors). The result has the length of the queries. Padding is of the keys.

# %%
memory = torch.randn(1, 3, 32)
with torch.no_grad():
    result, weights = attention(tokens, memory, need_weights=True)
    one, single = attention(tokens, memory[:, :1], need_weights=True)
print("result", tuple(result.shape), " weights", tuple(weights.shape))
print("with a single memory vector every weight is", single.unique().tolist())

# %% [markdown]
# The last line is why physdiffuser's encoder makes 24 memory vectors and not one: with one there is
# nothing to choose from, each token gets the same vector, and attention is a constant.

# %%
assert torch.allclose(one, one[:, :1].expand_as(one), atol=1e-6)

# %% [markdown]
# ## What a variant cannot do
#
# `physics-slice` mixes all rows into slices, so it cannot be causal, and it says so when a network is
# built, not after a day of training:

# %%
from physdiffuser.errors import UsageError
from physdiffuser.models.attention import require

try:
    require(find_attention("physics-slice"), ["causal"], "writing formulas from left to right")
except UsageError as error:
    print(error)
else:
    raise AssertionError("physics-slice must be refused")
