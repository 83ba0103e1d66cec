"""Kernels of topics."""
