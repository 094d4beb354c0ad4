"""What the trained networks do: attention maps, trajectories, statistics over suites, and a page of them.

`capture` listens to the networks, `subjects` says which tables they are shown, `session` shows one and keeps
what was heard; `reads`, `slices`, `biases`, `trajectories` and `statistics` turn that into numbers, the
modules named `draw_*` into pictures, `page` and `folder` into files. Importing this loads no torch.
"""
