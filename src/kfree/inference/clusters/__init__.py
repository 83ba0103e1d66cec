"""Hard clusters: DP-means, its algorithms and searches."""
