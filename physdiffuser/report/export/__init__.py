"""A formula as source code, as a Python function and as a torch module."""
