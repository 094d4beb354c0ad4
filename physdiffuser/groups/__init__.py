"""One law for several groups of rows: some constants are shared, the others differ by group."""
