"""Kernels of hard clusters."""
