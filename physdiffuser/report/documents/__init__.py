"""The JSON document of a solution, written and read."""
