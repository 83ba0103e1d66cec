"""Colours as eyes see them: CIELAB, also of those who do not tell red from green."""

import numpy as np

#: Linear RGB as other eyes see it: Machado, Oliveira & Fernandes (2009), Table 1, severity 1.
EYES = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
}
_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def linear(colours):
    """Hex colours as linear RGB (n, 3)."""
    value = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in colours]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(colours, eyes="normal"):
    """Hex colours in CIELAB (n, 3), D65."""
    ratio = np.clip(linear(colours) @ EYES[eyes].T, 0, 1) @ _XYZ.T / _XYZ.sum(axis=1)
    root = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.stack([116 * root[:, 1] - 16, 500 * (root[:, 0] - root[:, 1]), 200 * (root[:, 1] - root[:, 2])], axis=1)


def least_distance(colours, eyes="normal"):
    """Distance of the two nearest colours."""
    values = lab(colours, eyes)
    far = np.linalg.norm(values[:, None] - values[None], axis=2)
    return far[np.triu_indices(len(colours), 1)].min()


def contrast(colours, ground):
    """Contrast ratios with a ground (WCAG 2)."""
    light, ground = (linear(some) @ _XYZ[1] + 0.05 for some in (colours, [ground]))
    return np.maximum(light / ground, ground / light)
