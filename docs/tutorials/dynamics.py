# %% [markdown]
# # Differential equations from trajectories
#
# A pendulum is filmed: the table has the time and the angle, with an error of a hundredth of a radian. The
# velocity was not measured, so the equation is of second order. The script makes the table, so that the
# answer can be judged.

# %%
import numpy as np
from scipy.integrate import solve_ivp

rng = np.random.default_rng(3)
t = np.linspace(0, 10, 150)


def pendulum(t, state):
    angle, velocity = state
    return [velocity, -3.1 * np.sin(angle) - 0.25 * velocity]


angle = solve_ivp(pendulum, (0, 10), [2.0, 0.0], t_eval=t, rtol=1e-10, atol=1e-10).y[0]
table = {"t": t, "angle": angle + 0.01 * rng.standard_normal(t.size)}

# %% [markdown]
# ## Solve
#
# The first column is the time. On the command line this is `physdiffuser dynamics pendulum.csv`.
# Equations of first order are tried before those of second order; `order=2` skips them.

# %%
from physdiffuser import solve_dynamics
from physdiffuser.dynamics.report.terminal import render_dynamics

found = solve_dynamics(table, order=2, steps=4)
print(render_dynamics(found))
assert "sin(angle)" in found.equations[0].best.text

# %% [markdown]
# The last fifth of the rows was held out and compared with a simulation from the first point. `angle_dot`
# is the derivative of the angle. The number in parentheses is the standard error of a constant in units
# of its last digits.
#
# ## Simulate
#
# The equations can be integrated from any position and velocity. The second column is the velocity.

# %%
times = np.linspace(0, 20, 5)
print(found.simulate({"angle": 0.5, "angle_dot": 0.0}, times).round(3))

# %% [markdown]
# ## Conserved quantities
#
# Without friction and noise the energy is conserved. It is found from the equation and checked by sympy.

# %%
frictionless = solve_ivp(
    lambda t, state: [state[1], -3.1 * np.sin(state[0])],
    (0, 10),
    [2.0, 0.0],
    t_eval=t,
    rtol=1e-11,
    atol=1e-12,
)
ideal = solve_dynamics({"t": t, "angle": frictionless.y[0]}, order=2, steps=2)
print(ideal.equations[0].target, "=", ideal.equations[0].best.text)
for one in ideal.conserved:
    print(one.text, "proven" if one.proven else "")
assert ideal.conserved[0].proven

# %% [markdown]
# ## Use it elsewhere
#
# `export` writes the system for `solve_ivp`, torch, C, Julia, sympy or LaTeX.

# %%
print(found.export("julia"))
