"""The process of the command line: signals, standard output, messages, and the end with its exit code."""
