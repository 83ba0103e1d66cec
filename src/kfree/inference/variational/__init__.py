"""Variational inference for mixtures with infinitely many components."""
