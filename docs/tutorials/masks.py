# %% [markdown]
# # Masks and cross-attention
#
# A mask excludes elements from attention. It is added to the logits before the softmax: minus infinity
# gives a weight of zero, and the other weights still sum to one. This page shows three uses, each with a
# check that detects mistakes.

# %%
import torch
from matplotlib import pyplot as plt

from physdiffuser.models.attention import KeyValueCache, build_attention, find_attention

torch.manual_seed(0)
attention = build_attention(find_attention("standard"), 32, 4, {}).eval()

# %% [markdown]
# ## Padding
#
# Tables of different lengths share a batch, and the shorter ones are filled up with meaningless rows.
# `padding_mask` is True for these rows. The check: changing the padded rows must not change the result.

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
# A common mistake is to mask after the softmax. The remaining weights then no longer sum to one, and the
# result for a table depends on its amount of padding, which the other tables of the batch determine.

# %%
with torch.no_grad():
    _, unmasked = attention(rows, need_weights=True)
    wrong = unmasked.masked_fill(padding[:, None, None, :], 0.0)
print(f"sum of the weights, masked before: {weights.sum(-1).mean():.3f}, after: {wrong.sum(-1).mean():.3f}")
assert wrong.sum(-1).max() < 0.95

# %% [markdown]
# ## Causal
#
# When a formula is written from left to right, a position must not depend on later ones. Position `i` may
# attend to positions up to `i`, so the matrix of weights is a lower triangle. The check: changing later
# tokens must not change the results at earlier positions.

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
# Since results at earlier positions do not change, their keys and values need not be computed again for
# every new token. A cache keeps them, and processing one token at a time gives the same results as the
# whole sequence:

# %%
cache = KeyValueCache()
with torch.no_grad():
    steps = [attention(tokens[:, i : i + 1], causal=True, cache=cache)[0] for i in range(8)]
assert torch.allclose(torch.cat(steps, dim=1), first, atol=1e-5)
print("with a cache, token by token:", f"{(torch.cat(steps, dim=1) - first).abs().max():.1e}")

# %% [markdown]
# ## Cross-attention
#
# Queries and keys may come from different sequences: the 8 tokens of a formula attend to the 3 vectors
# that summarise a table. The result has the length of the queries. The padding mask refers to the keys.

# %%
memory = torch.randn(1, 3, 32)
with torch.no_grad():
    result, weights = attention(tokens, memory, need_weights=True)
    one, single = attention(tokens, memory[:, :1], need_weights=True)
print("result", tuple(result.shape), " weights", tuple(weights.shape))
print("with a single memory vector every weight is", single.unique().tolist())

# %% [markdown]
# With a single memory vector every token gets the same result, so attention has no effect. This is why
# the encoder of physdiffuser makes 24 memory vectors.

# %%
assert torch.allclose(one, one[:, :1].expand_as(one), atol=1e-6)

# %% [markdown]
# ## What a variant cannot do
#
# `physics-slice` mixes all rows into slices, so it cannot be causal. It reports this when a network is
# built:

# %%
from physdiffuser.errors import UsageError
from physdiffuser.models.attention import require

try:
    require(find_attention("physics-slice"), ["causal"], "writing formulas from left to right")
except UsageError as error:
    print(error)
else:
    raise AssertionError("physics-slice must be refused")
