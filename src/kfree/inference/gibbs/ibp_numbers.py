"""The constants of the sampler of binary features."""

from typing import NamedTuple


class IBPNumbers(NamedTuple):
    """Constants of the sampler. Those marked "speed" change how long a fit takes and nothing that is found."""

    #: Features that a row may have for itself. Set: by hand, spec/features.md, section 12 (J), has 8.
    most_private: int = 20
    #: (speed) Columns beyond those in use that a sweep begins with. Set: by hand.
    room: int = 8
    #: Noise variance as a share of that of the features, the least that a chain may come to: features of which one is
    #: a sum of others could not be told apart else. Set: rounding of float64.
    least_ridge: float = 1e-9
    #: The same for each row, if that is more. Set: rounding of float64.
    least_ridge_of_row: float = 1e-12
    #: Shape of the inverse gamma priors of variances that are learned. Set: by hand, as little as one observation.
    shape: float = 1.0
    #: Scale of the prior of the noise variance, as a share of the mean square of the entries about their column's mean.
    #: Set: by hand.
    noise_share: float = 0.1
    #: The same, at least, as a share of the mean square of the entries. Set: by hand.
    least_rest: float = 1e-3
    #: Share of the mean square of the entries that their columns' variance must be. Set: rounding of float64, with
    #: ``least_ridge``.
    far: float = 1e-8
    #: Restarts of BP-means whose result the first chain starts from. Set: by hand, time.
    start_restarts: int = 3
    #: Passes of each of them, at most. Set: by hand.
    start_passes: int = 300
    #: (speed) Rows of bits (all 2^K) times rows of data that are looked at together. Set: by hand, the cache.
    entries: int = 1_000_000
    #: Sweeps of single bits in which a row with many features looks for better ones. Set: by hand.
    bit_sweeps: int = 50


IBP = IBPNumbers()
