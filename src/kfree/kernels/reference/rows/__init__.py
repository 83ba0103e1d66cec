"""Kernels that read, sum and part rows."""
