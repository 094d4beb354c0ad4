"""The answer as plain data, a JSON document and text."""
