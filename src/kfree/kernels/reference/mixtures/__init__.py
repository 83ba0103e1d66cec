"""Kernels of mixtures."""
