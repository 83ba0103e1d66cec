"""How it is fitted: one loop, one assignment, and the algorithms on them."""
