"""What a table shows about its law before any formula is tried: factors, merged variables, scale groups."""
