"""Mixtures by matching kernel means: the Hilbert-space embedding of Dirichlet-process mixtures."""
