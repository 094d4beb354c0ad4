"""Trees as text, LaTeX and MathML."""
