"""Samples of posteriors: chains, partitions, and what samples say."""
