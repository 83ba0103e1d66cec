"""Sixty colours that stay apart, also for eyes that do not tell red from green, on white and on black."""

# Chosen by their least distance in CIELAB, as normal, protanopic and deuteranopic eyes (Machado et al. 2009) see them,
# with a lightness from 30 to 76. The first eight are one of each hue; each later one is the farthest from those before.
_COLOURS = (
    *("#1e55a4", "#ff9e14", "#59ceba", "#950e4f", "#3dbffc", "#ee8265", "#636906", "#4a43e2", "#a378bc", "#905943"),
    *("#f75585", "#8a87fd", "#e38d3d", "#655384", "#a932c9", "#2f9b79", "#892124", "#4eccd8", "#9e57f9", "#f86111"),
    *("#c92516", "#d9b160", "#82cb92", "#f399ad", "#656680", "#6114c1", "#6724ad", "#7d8da5", "#7b984a", "#45968d"),
    *("#51825b", "#2e65a0", "#5c3a7c", "#54b66e", "#63a017", "#a9692e", "#7c606a", "#4b79a1", "#649cda", "#92bbea"),
    *("#2a532a", "#f59e86", "#89a797", "#8f61bb", "#236bcf", "#77a2fc", "#aac62f", "#b1a5bf", "#926d3d", "#cc5e66"),
    *("#6b248e", "#ab92c6", "#2e4f48", "#7682e0", "#395061", "#8d2f66", "#37bc40", "#892504", "#3569e7", "#71574a"),
)
#: What has no cluster.
GREY = "#8a949c"


def colours(K: int) -> list[str]:
    """K colours, ``"#rrggbb"``, always in the same order; from the 61st on they repeat."""
    return [_COLOURS[k % len(_COLOURS)] for k in range(K)]
