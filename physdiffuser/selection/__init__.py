"""Which formula to believe: description length, form priors and tests of the residuals."""
