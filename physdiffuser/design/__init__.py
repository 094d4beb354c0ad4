"""Design of experiments: which measurements tell laws apart."""
