"""Fast values of many expressions on many rows: programs, kernels and the compiled loop that runs them."""
