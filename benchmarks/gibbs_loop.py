"""Neal's Algorithm 3 for Gaussians, one row after the other in plain numpy: the yardstick of the gibbs table."""

import numpy as np
from scipy.special import gammaln


class GaussianChain:
    """Collapsed Gibbs sampling with a Normal-Wishart prior of a tenth of the width of the data.

    Only the two clusters that a row leaves and joins are solved anew; the row is scored under all of them at once.
    """

    def __init__(self, X, labels, concentration=1.0, seed=0):
        d = X.shape[1]
        self.X, self.rng, self.log_alpha = X - X.mean(axis=0), np.random.default_rng(seed), np.log(concentration)
        self.kappa, self.nu, self.psi = 0.1, d + 2.0, np.diag(X.var(axis=0)) * 0.1 * (d + 2)
        self.labels = np.unique(labels, return_inverse=True)[1]
        K = self.labels.max() + 1
        self.count = np.bincount(self.labels).astype(float)
        self.total = np.stack([self.X[self.labels == k].sum(axis=0) for k in range(K)])
        self.square = np.stack([self.X[self.labels == k].T @ self.X[self.labels == k] for k in range(K)])
        solved = [self.solve(self.count[k], self.total[k], self.square[k]) for k in range(K)]
        self.mean, self.inverse, self.offset, self.df = (np.array(part) for part in zip(*solved))
        self.empty = self.solve(0.0, np.zeros(d), np.zeros((d, d)))

    def solve(self, count, total, square):
        """Mean, whitening matrix, offset and degrees of freedom of the predictive Student distribution."""
        d = total.size
        kappa, nu = self.kappa + count, self.nu + count
        mean = total / kappa
        df = nu - d + 1
        scale = (self.psi + square - kappa * np.outer(mean, mean)) * ((kappa + 1) / (kappa * df))
        root = np.linalg.cholesky(scale)
        offset = gammaln((df + d) / 2) - gammaln(df / 2) - d / 2 * np.log(df * np.pi) - np.log(np.diag(root)).sum()
        return mean, np.linalg.inv(root), offset, df

    def scores(self, x, mean, inverse, offset, df):
        """Log predictive densities of a row under some clusters."""
        gap = np.einsum("kij,kj->ki", inverse, x - mean)
        return offset - (df + x.size) / 2 * np.log1p((gap**2).sum(axis=1) / df)

    def change(self, k, x, sign):
        """Add a row to a cluster, or take it out."""
        self.count[k] += sign
        self.total[k] += sign * x
        self.square[k] += sign * np.outer(x, x)
        self.mean[k], self.inverse[k], self.offset[k], self.df[k] = self.solve(
            self.count[k], self.total[k], self.square[k]
        )

    def remove(self, k):
        """Forget a cluster without rows."""
        for name in ("count", "total", "square", "mean", "inverse", "offset", "df"):
            setattr(self, name, np.delete(getattr(self, name), k, axis=0))
        self.labels[self.labels > k] -= 1

    def open(self):
        """A cluster without rows, at the end."""
        d = self.X.shape[1]
        fresh = (0.0, np.zeros(d), np.zeros((d, d)), *self.empty)
        for name, value in zip(("count", "total", "square", "mean", "inverse", "offset", "df"), fresh):
            setattr(self, name, np.concatenate([getattr(self, name), np.asarray(value)[None]]))

    def sweep(self):
        """Every row once; how many clusters there are."""
        for i, x in enumerate(self.X):
            own = self.labels[i]
            self.labels[i] = -1
            if self.count[own] == 1:
                self.remove(own)
            else:
                self.change(own, x, -1)
            score = np.log(self.count) + self.scores(x, self.mean, self.inverse, self.offset, self.df)
            fresh = self.log_alpha + self.scores(x, *(np.asarray(part)[None] for part in self.empty))
            score = np.concatenate([score, fresh])
            chance = np.cumsum(np.exp(score - score.max()))
            k = int(np.searchsorted(chance, self.rng.random() * chance[-1]))
            if k == self.count.size:
                self.open()
            self.change(k, x, 1)
            self.labels[i] = k
        return self.count.size
