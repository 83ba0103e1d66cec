"""
A family of your own
====================

Compound Poisson amounts are either exactly zero or positive: rain per day, insurance claims per year, spending per
visit. There are many exact zeros, and the spread of the others grows with their size. The Tweedie family with power 1.5
describes them (variance proportional to mean^1.5). kfree does not have it; here it is.
"""

# %%
# A family is its formulas; :class:`kfree.Separable` adds up the columns.

import numpy as np
from scipy.sparse import csr_matrix

from kfree import DPMeans, Separable
from kfree.families import MINUS_INF


class CompoundPoisson(Separable):
    r"""Tweedie with power 1.5, independent over columns.

    .. math:: \phi(x) = \sum_j -4 \sqrt{x_j}, \qquad D(x, \mu) = \sum_j 2 (\sqrt{x_j} - \sqrt{\mu_j})^2 / \sqrt{\mu_j}
    """

    name = "compound_poisson"
    lower = 0.0
    advice = "Amounts cannot be negative; clip them, or use divergence='sqeuclidean'."

    def phi(self, stats):
        """The convex function the divergence belongs to."""
        return -4 * np.sqrt(stats).sum(axis=-1)

    def psi(self, theta):
        """Its conjugate, max over x of <x, theta> - phi(x)."""
        return (-4 / theta).sum(axis=-1)

    def natural(self, mean):
        """Gradient of phi; it is -inf at 0, for which MINUS_INF stands in."""
        return np.where(mean > 0, -2 / np.sqrt(np.maximum(mean, 1e-300)), MINUS_INF)

    def mean(self, theta):
        """Gradient of psi, the inverse of natural."""
        return 4 / theta**2

    def terms(self, stats, mean):
        """The divergence, column by column: 0 where both are 0, +inf where only the centre is."""
        gap = 2 * (np.sqrt(stats) - np.sqrt(mean)) ** 2
        return np.divide(gap, np.sqrt(mean), out=np.where(gap > 0, np.inf, 0.0), where=mean > 0)


# %%
# Rain at 600 stations, zero in many a month.
def make_rain(n=600, seed=0):
    """Monthly rain at n stations, and their climate: wet winter, wet summer, or rain all year, well apart."""
    rng = np.random.default_rng(seed)
    season = np.cos(2 * np.pi * np.arange(12) / 12)
    rate = np.stack([2 + 3 * season, 2 - 3 * season, np.full(12, 4.0)]).clip(0.1)  # rainy spells a month
    climate = rng.integers(3, size=n)
    spells = rng.poisson(rate[climate])
    return rng.gamma(spells.clip(1), 10.0) * (spells > 0), climate


def main():
    """Cluster dense and sparse rows with it."""
    X, _ = make_rain()
    print(f"{X.shape[0]} stations, {X.shape[1]} months, {100 * (X == 0).mean():.0f} % of the months without rain")
    model = DPMeans(divergence=CompoundPoisson()).fit(X)
    print(f"{model.n_clusters_} clusters of {model.cluster_weights_.astype(int).tolist()} stations")
    for centre in model.cluster_centers_:
        print("  mm a month:", " ".join(f"{value:3.0f}" for value in centre))
    same = (DPMeans(divergence=CompoundPoisson()).fit_predict(csr_matrix(X)) == model.labels_).all()
    print(f"sparse rows get the same labels: {same}")
    return model


if __name__ == "__main__":
    model = main()

# %%
# The centres: three climates.
if __name__ == "__main__":
    import matplotlib.pyplot as plt

    for centre, weight in zip(model.cluster_centers_, model.cluster_weights_):
        plt.plot(range(1, 13), centre, marker="o", label=f"{weight:.0f} stations")
    plt.xlabel("month")
    plt.ylabel("mm of rain")
    plt.title(f"{model.n_clusters_} climates")
    plt.legend()
    plt.show()
