# %% [markdown]
# # Additive bias, done right and wrong
#
# Physics often says which rows should influence each other: near ones, or those uphill. Attention takes
# this into account by a *bias*, a number added to each logit. Several wrong ways to do this still train,
# so this page shows each with a number that reveals the mistake.

# %%
import torch
from matplotlib import pyplot as plt

from physdiffuser.models.attention import build_attention, find_attention

torch.manual_seed(0)

# %% [markdown]
# Eight rows on a line. A row should look mostly at its neighbours: the bias is minus the squared distance.

# %%
place = torch.linspace(0, 1, 8)
distance = (place[:, None] - place[None, :]).square()
logits = torch.randn(8, 8)
strength = 20.0

right = (logits - strength * distance).softmax(-1)
after_softmax = logits.softmax(-1) - 0.5 * distance
scaled_weights = logits.softmax(-1) * torch.exp(-strength * distance)
multiplied = (logits * torch.exp(-strength * distance)).softmax(-1)

figure, axes = plt.subplots(1, 4, figsize=(12, 3), layout="constrained")
pairs = [
    (right, "added to the logits"),
    (after_softmax, "added to the weights"),
    (scaled_weights, "weights multiplied"),
    (multiplied, "logits multiplied"),
]
for axis, (weights, title) in zip(axes, pairs, strict=True):
    figure.colorbar(axis.imshow(weights, cmap="viridis"), ax=axis)
    axis.set(title=title, xlabel="seen", ylabel="looking")

# %% [markdown]
# ## Wrong: added to the weights, or multiplied into them
#
# Weights must be positive and sum to one. Here they are negative, or do not sum to one, so the size of a
# row's result depends on the place of the row alone.

# %%
shown = {"right": right, "added to the weights": after_softmax, "weights multiplied": scaled_weights}
for name, weights in shown.items():
    sums = weights.sum(-1)
    print(f"{name:20s} sums {sums.min():5.2f} to {sums.max():.2f}, least weight {weights.min():.3f}")
assert torch.allclose(right.sum(-1), torch.ones(8))
assert after_softmax.min() < 0 and scaled_weights.sum(-1).max() < 0.9

# %% [markdown]
# ## Wrong: multiplied into the logits
#
# A factor of zero makes the logit zero, and not the weight: a far row keeps `exp(0)`, which is more than
# a near row with a negative logit gets. Where the logit is negative, a larger factor *lowers* the weight.

# %%
far, near = multiplied[0, -1], right[0, -1]
print(f"weight of the farthest row: {near:.4f} when added, {far:.4f} when multiplied")
assert far > 10 * near

# %% [markdown]
# ## Wrong: a bias in metres
#
# The logits are of the size of one. Raw coordinates in metres or kelvin can make the bias a thousand
# times larger, so that attention always takes the nearest row; a bias that is too small has no effect.
# Therefore the coordinates are first scaled to unit standard deviation over the rows that are not
# padding.

# %%
metres = 1000 * place
raw = (logits - (metres[:, None] - metres[None, :]).square()).softmax(-1)
scaled = (place - place.mean()) / place.std()
good = (logits - (scaled[:, None] - scaled[None, :]).square()).softmax(-1)
for name, weights in (("metres", raw), ("unit spread", good)):
    entropy = -(weights * weights.clamp_min(1e-12).log()).sum(-1).mean()
    print(f"{name:12s} largest weight {weights.max(-1).values.mean():.2f}, entropy {entropy:.2f}")
assert raw.max(-1).values.mean() > 0.99

# %% [markdown]
# ## Right: the variant `biased`
#
# It adds the bias to the logits, normalises the coordinates, and learns one strength for each head, kept
# positive by a softplus. The form `barrier` lowers the logits of rows uphill. In the form `relative` a
# small network computes the bias from the difference of two rows. The checks are that weights sum to one,
# that the bias does not change when a column is shifted or scaled, and that a strength of zero gives
# plain attention.

# %%
attention = build_attention(find_attention("biased"), 32, 4, {"form": "barrier"}).eval()
rows, coordinates = torch.randn(1, 8, 32), torch.randn(1, 8, 10)
with torch.no_grad():
    _, weights = attention(rows, coordinates=coordinates, need_weights=True)
    _, moved = attention(rows, coordinates=1000 * coordinates + 273.15, need_weights=True)
    attention.strength.fill_(-50.0)  # softplus of it: zero
    _, without = attention(rows, coordinates=coordinates, need_weights=True)
    _, plain = attention.attention(rows, need_weights=True)
print(f"sums: {weights.sum(-1).min():.4f} to {weights.sum(-1).max():.4f}")
print(f"change when the column is given in other units: {(weights - moved).abs().max():.1e}")
print(f"strength 0 against plain attention: {(without - plain).abs().max():.1e}")
assert torch.allclose(weights, moved, atol=1e-3)
assert torch.allclose(without, plain, atol=1e-6)

# %% [markdown]
# The share of attention that goes uphill is smaller than without the bias:

# %%
height = coordinates[0, :, -1]
uphill = (height[None, :] > height[:, None]).float()
share, share_plain = ((w[0] * uphill).sum((-1, -2)).mean() / 8 for w in (weights, plain))
print(f"attention that goes uphill: {share:.2f} with the barrier, {share_plain:.2f} without")
assert share < share_plain
