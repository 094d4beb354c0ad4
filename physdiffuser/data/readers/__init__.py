"""One reader for each file format, and the text layers below them."""
