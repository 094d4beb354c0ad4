"""What several commands share: options, progress, running a search, stored runs."""
