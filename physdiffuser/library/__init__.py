"""The expression library: distinct small expressions, looked up by hash or screened by matrix products."""
