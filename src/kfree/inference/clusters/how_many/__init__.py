"""How many clusters: the price from the data."""
