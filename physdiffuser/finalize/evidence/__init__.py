"""Evidence for and against the chosen formula: residuals, poles, chi-square, and the probability."""
