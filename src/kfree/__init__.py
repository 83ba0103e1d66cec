"""kfree: clusters, topics and latent features without being told how many."""

__version__ = "0.1.0"
