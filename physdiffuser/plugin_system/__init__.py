"""Loading plugins, and limits on what they can do to a run."""
