"""Tables of very large or very small numbers are solved in other units, and the answer is converted back."""
