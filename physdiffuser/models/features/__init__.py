"""What the networks are given of a table: numbers, row features, statistics."""
