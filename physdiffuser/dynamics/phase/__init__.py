"""The phase space of found equations: fixed points and their stability."""
