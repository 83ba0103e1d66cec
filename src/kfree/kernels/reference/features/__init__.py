"""Kernels of binary features."""
