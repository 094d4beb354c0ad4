# %% [markdown]
# # Standard and physics-slice attention on a flow
#
# Standard attention compares every point with every other, so its cost grows with the square of the
# number of points. Physics-slice attention (Transolver, Wu et al. 2024) assigns points softly to a few
# slices, applies attention among the slices, and distributes the results to the points, so its cost grows
# in proportion to the number of points. This page makes a mesh with a slow viscous flow past a cylinder,
# trains both variants briefly to predict the pressure from position and velocity, and shows the slices.

# %%
import time

import numpy as np
import torch
from matplotlib import pyplot as plt
from torch import nn

from physdiffuser.models.attention import build_attention, find_attention

torch.manual_seed(0)
rng = np.random.default_rng(0)
torch.set_num_threads(1)

# %% [markdown]
# ## A mesh and a flow
#
# Points around a disc of radius one, denser near it. The velocity is that of a Stokes flow near a cylinder
# (the inner solution of Lamb, `u_r = C cos(t) (log r - 1/2 + 1/(2 r**2))` and its partner), and the
# pressure that belongs to it falls off as `cos(t)/r`.


# %%
def flow(points):
    """Positions and velocities (points, 4) and pressure (points,) of a random mesh."""
    r = 1 + 3 * rng.random(points) ** 2
    t = 2 * np.pi * rng.random(points)
    radial = np.cos(t) * (np.log(r) - 0.5 + 0.5 / r**2)
    around = -np.sin(t) * (np.log(r) + 0.5 - 0.5 / r**2)
    u, v = radial * np.cos(t) - around * np.sin(t), radial * np.sin(t) + around * np.cos(t)
    features = np.stack([r * np.cos(t), r * np.sin(t), u, v], axis=1)
    pressure = -2 * np.cos(t) / r
    return torch.tensor(features, dtype=torch.float32), torch.tensor(pressure, dtype=torch.float32)


features, pressure = flow(1500)
figure, axis = plt.subplots(figsize=(5, 4), layout="constrained")
dots = axis.scatter(features[:, 0], features[:, 1], c=pressure, s=6, cmap="RdBu_r")
axis.quiver(*features[::12].T.numpy(), scale=25, width=0.003)
axis.set(title="pressure and velocity", aspect="equal", xlabel="x", ylabel="y")
figure.colorbar(dots)

# %% [markdown]
# ## One network, two variants
#
# The network has one attention layer between two small layers. Only the name of the variant differs.


# %%
class Network(nn.Module):
    def __init__(self, variant, options):
        super().__init__()
        self.enter = nn.Sequential(nn.Linear(4, 32), nn.GELU(), nn.Linear(32, 32))
        self.attention = build_attention(find_attention(variant), 32, 4, options)
        self.norm = nn.LayerNorm(32)
        self.leave = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 1))

    def forward(self, x):
        x = self.enter(x)
        x = x + self.attention(self.norm(x))[0]
        return self.leave(x)[..., 0]


def train(variant, options, steps=60):
    network = Network(variant, options)
    optimiser = torch.optim.Adam(network.parameters(), 3e-3)
    for _ in range(steps):
        x, wanted = flow(256)
        loss = (network(x[None])[0] - wanted).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        left = (network(features[None])[0] - pressure).square().mean() / pressure.var()
    return network, left.item()


networks = {"standard": train("standard", {})}
for slices in (4, 8, 16):
    networks[f"{slices} slices"] = train("physics-slice", {"slices": slices})
for name, (_, left) in networks.items():
    print(f"{name:9s} leave {100 * left:4.1f} % of the variance on a mesh of 1,500 points")
    assert left < 0.5

# %% [markdown]
# ## What a slice is
#
# The picture shows the slice that each point mostly belongs to, in each head, after this short training.
# The stronger the colour, the larger the share of the point in the slice. The regions were not given to
# the network: points with similar position and velocity end up in one slice. With more slices the regions
# are smaller, and some slices stay nearly empty.

# %%
figure, axes = plt.subplots(3, 4, figsize=(10, 7.5), layout="constrained", sharex=True, sharey=True)
for line, slices in zip(axes, (4, 8, 16), strict=True):
    network, _ = networks[f"{slices} slices"]
    with torch.no_grad():
        inside = network.norm(network.enter(features[None]))
        assignment = network.attention.assignment(inside)[0]  # (heads, points, slices)
    assert torch.allclose(assignment.sum(-1), torch.ones(4, 1500), atol=1e-5)
    line[0].set_ylabel(f"M = {slices}", fontsize=13)
    for head, axis in enumerate(line):
        share, which = assignment[head].max(dim=-1)
        axis.scatter(
            features[:, 0], features[:, 1], c=which, alpha=share / share.max(), s=9, linewidths=0,
            cmap="tab10" if slices < 10 else "tab20", vmin=0, vmax=9 if slices < 10 else 19,
        )  # fmt: skip
        axis.set(title=f"head {head}: {len(which.unique())} slices in use", aspect="equal")
    mass = sorted(assignment.mean(dim=1)[0].tolist(), reverse=True)
    print(f"M = {slices:2d}: share of the points in the slices of head 0: {[round(m, 2) for m in mass]}")

# %% [markdown]
# ## What it costs
#
# The table gives the processor time of one pass without gradients, on one thread of the machine that made
# this page. The time of standard attention grows with the square of the number of points, that of slices
# in proportion to it.


# %%
def seconds(module, points):
    x = torch.randn(1, points, 32)
    with torch.no_grad():
        module(x)
        begun = time.process_time()
        module(x)
    return time.process_time() - begun


for points in (500, 1000, 2000, 4000):
    taken = {name: seconds(network.attention, points) for name, (network, _) in networks.items()}
    print(f"{points:5d} points: " + ", ".join(f"{name} {1000 * s:.1f} ms" for name, s in taken.items()))

# %% [markdown]
# With slices a point no longer attends to single points, only to a few averages. Where one neighbour
# matters (an outlier, a shock), standard attention can use it and slices cannot.
