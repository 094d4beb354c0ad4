"""From fitted numbers to exact constants, where the data support them."""
