"""Starting values of nonlinear constants, from the data and from where a constant stands."""
