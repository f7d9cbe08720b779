"""How a result is laid out: its parts, and a terminal that prints them."""
