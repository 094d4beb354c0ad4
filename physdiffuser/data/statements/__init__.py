"""What the user states about a table: known constants, groups, errors of the inputs, units."""
