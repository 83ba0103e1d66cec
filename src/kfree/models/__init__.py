"""A problem bound to data, and a fitted model that can be asked; no scikit-learn."""
