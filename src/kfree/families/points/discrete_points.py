"""Documents and binary rows with known probabilities, and kernels between them."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from kfree.families.base import Array
from kfree.families.components import Linear
from kfree.families.points.point_family import Kernel, PointFamily, Spread, few_bits, log_mean_exp, waves

# Probabilities that are given as 0 or 1 leave so much to the other side: logs of it are numbers.
_LEAST = 1e-15
# Rows, or ones and zeros, that every column of a component is worth before data.
_PSEUDO = 0.5
# What shares of rows are rounded to in random features, far below the noise of these.
_SHARE = 2.0**-44
# Entries of a temporary over pairs of components.
_PAIRS = 1_000_000


class Chances(NamedTuple):
    """Probabilities: of the columns (they sum to one), or of a one in each."""

    chance: Array  # (K, p)


class DocumentPoints(PointFamily):
    r"""Counts of a row given their total; the kernel is the square of the inner product of shares.

    With shares x of total n, E[x x'] = (1 - h) theta theta' + h diag(theta), h = 1 / n; a mean of 1 / n stands for it.
    """

    name = "multinomial"
    lower = 0.0
    counted = "row"
    advice = "Counts are meant; clip negative entries or use family='gaussian'."
    divergence = "kl"
    has_width = False

    def seen(self, X: Any) -> Any:
        """Shares of the totals."""
        total = np.asarray(X.sum(axis=1), dtype=np.float64).ravel()
        if not sp.issparse(X):
            return X / total[:, None]
        shares = sp.csr_matrix(X, dtype=np.float64, copy=True)
        shares.data /= np.repeat(total, np.diff(shares.indptr))
        return shares

    def form(self, params: Chances) -> Linear:
        """Log-probabilities."""
        return Linear(np.log(params.chance), np.zeros(params.chance.shape[0]))

    def log_base(self, X: Any) -> Array:
        """The multinomial coefficient."""
        if sp.issparse(X):
            logs = X.astype(np.float64)
            logs.data = gammaln(logs.data + 1)
            own = np.asarray(logs.sum(axis=1)).ravel()
        else:
            own = gammaln(np.asarray(X, dtype=np.float64) + 1).sum(axis=1)
        return gammaln(np.asarray(X.sum(axis=1), dtype=np.float64).ravel() + 1) - own

    def log_predictive(self, params: Chances, X: Any) -> Array:
        """Multinomial."""
        return np.asarray(X @ np.log(params.chance).T) + self.log_base(X)[:, None]

    def sample(self, params: Chances, labels: Array, rng: np.random.Generator, length: Array) -> Array:
        """Counts."""
        return rng.multinomial(length, params.chance[labels]).astype(np.float64)

    def means(self, params: Chances) -> Array:
        """Probabilities."""
        return params.chance

    def made_of(self, means: Array, covariances: Array | None) -> Chances:
        """Shares of the columns."""
        return _as_shares(means)

    def estimate(self, X: Any, resp: Array, spread: Spread) -> Chances:
        """Counts of all rows of a component, and half a count for every column."""
        return _as_shares(np.asarray(X.T @ resp).T + _PSEUDO)

    def draw(self, spread: Spread, count: int, rng: np.random.Generator) -> Chances:
        """Dirichlet about the mean of the rows, worth half a count a column."""
        mean = (spread.mean + _LEAST) / (spread.mean + _LEAST).sum()
        shape = np.maximum(_PSEUDO * mean.size * mean, 0.01)
        return _as_shares(rng.standard_gamma(shape, size=(count, mean.size)))

    def apart(self, X: Any, Y: Any) -> Array:
        """Squared distances of shares."""
        own, other = (np.asarray(_squares(some).sum(axis=1)).ravel() for some in (X, Y))
        return np.maximum(own[:, None] + other[None] - 2 * _products(X, Y), 0.0)

    def between(self, kernel: Kernel, X: Any, Y: Any) -> Array:
        """Squares of inner products of shares."""
        return _products(X, Y) ** 2

    def own(self, X: Any) -> Array:
        """Fourth powers of the lengths of shares."""
        return np.asarray(_squares(X).sum(axis=1)).ravel() ** 2

    def embed(self, kernel: Kernel, params: Chances, X: Any) -> Array:
        """x' E[y y'] x."""
        h = kernel.brevity
        value = (1 - h) * np.asarray(X @ params.chance.T) ** 2 + h * np.asarray(_squares(X) @ params.chance.T)
        return value * np.exp(-kernel.log_unit)

    def inner(self, kernel: Kernel, one: Chances, other: Chances) -> Array:
        """<E[x x'], E[y y']>."""
        h, a, b = kernel.brevity, one.chance, other.chance
        product = a @ b.T
        cross = (a * a) @ b.T + a @ (b * b).T
        return ((1 - h) ** 2 * product**2 + h * (1 - h) * cross + h**2 * product) * np.exp(-kernel.log_unit)

    def log_norms(self, kernel: Kernel, params: Chances) -> Array:
        """Logs of squared lengths."""
        h, a = kernel.brevity, params.chance
        square, cube = (a * a).sum(axis=1), (a * a * a).sum(axis=1)
        return np.log((1 - h) ** 2 * square**2 + 2 * h * (1 - h) * cube + h**2 * square)

    def frequencies(self, kernel: Kernel, columns: int, count: int, rng: np.random.Generator) -> Array:
        """Pairs of random signs (2, p, M): <u, x> <v, x> is a random feature of the squared product."""
        return rng.choice((-1.0, 1.0), size=(count, 2, columns)).transpose(1, 2, 0)

    def row_features(self, frequencies: Array, X: Any) -> Array:
        """Products of two random projections, in which sums of rounded shares are exact in any order."""
        u, v = frequencies
        X = _rounded(X)
        return np.asarray(X @ u) * np.asarray(X @ v) / np.sqrt(u.shape[1])

    def component_features(self, kernel: Kernel, frequencies: Array, params: Chances) -> Array:
        """u' E[x x'] v."""
        u, v = frequencies
        h, chance = kernel.brevity, params.chance
        return ((1 - h) * (chance @ u) * (chance @ v) + h * (chance @ (u * v))) / np.sqrt(u.shape[1])


class BitPoints(PointFamily):
    r"""Independent zeros and ones; the kernel is :math:`\rho` to the Hamming distance, :math:`\rho = e^{-1 / 2 s^2}`.

    On bits that is the Gaussian kernel of bandwidth s, with its random features.
    """

    name = "bernoulli"
    lower, upper = 0.0, 1.0
    advice = "Binarise the data, or use family='multinomial' for counts."
    divergence = "bernoulli"

    def form(self, params: Chances) -> Linear:
        """Logits, less what zeros everywhere would have."""
        none = np.log1p(-params.chance)
        return Linear(np.log(params.chance) - none, -none.sum(axis=1))

    def log_base(self, X: Any) -> Array:
        """Zero."""
        return np.zeros(X.shape[0])

    def log_predictive(self, params: Chances, X: Any) -> Array:
        """Bernoulli."""
        coef, offset = self.form(params)
        return np.asarray(X @ coef.T) - offset

    def sample(self, params: Chances, labels: Array, rng: np.random.Generator, length: Array) -> Array:
        """Columns are independent."""
        chance = params.chance[labels]
        return (rng.random(chance.shape) < chance).astype(np.float64)

    def means(self, params: Chances) -> Array:
        """Probabilities of a one."""
        return params.chance

    def made_of(self, means: Array, covariances: Array | None) -> Chances:
        """Probabilities of a one."""
        return _as_chances(means)

    def estimate(self, X: Any, resp: Array, spread: Spread) -> Chances:
        """Shares of ones, with half a one and half a zero more."""
        mass = resp.sum(axis=0)[:, None]
        return _as_chances((np.asarray(X.T @ resp).T + _PSEUDO) / (mass + 2 * _PSEUDO))

    def draw(self, spread: Spread, count: int, rng: np.random.Generator) -> Chances:
        """Beta about the means of the columns, worth two rows."""
        a, b = 2 * spread.mean + 0.1, 2 * (1 - spread.mean) + 0.1
        ones, zeros = rng.spawn(2)
        first, second = (one.standard_gamma(shape, size=(count, a.size)) for one, shape in ((ones, a), (zeros, b)))
        return _as_chances(first / np.maximum(first + second, np.finfo(float).tiny))

    def apart(self, X: Any, Y: Any) -> Array:
        """Hamming distances."""
        own, other = (np.asarray(some.sum(axis=1), dtype=np.float64).ravel() for some in (X, Y))
        return own[:, None] + other[None] - 2 * _products(X, Y)

    def between(self, kernel: Kernel, X: Any, Y: Any) -> Array:
        """Powers of the Hamming distance."""
        apart = self.apart(X, Y)
        return log_mean_exp([apart * (-0.5 / width) for width in kernel.widths], 0.0)

    def embed(self, kernel: Kernel, params: Chances, X: Any) -> Array:
        """A product over columns of what a one, or a zero, has in common with the component."""
        logs = []
        for width in kernel.widths:
            ones, zeros = _log_common(params.chance, width), _log_common(1 - params.chance, width)
            logs.append(np.asarray(X @ (ones - zeros).T) + zeros.sum(axis=1))
        return log_mean_exp(logs, kernel.log_unit)

    def inner(self, kernel: Kernel, one: Chances, other: Chances) -> Array:
        """The same for columns that are one with a probability."""
        return log_mean_exp([_log_products(one.chance, other.chance, w) for w in kernel.widths], kernel.log_unit)

    def log_norms(self, kernel: Kernel, params: Chances) -> Array:
        """Logs of squared lengths."""
        a = params.chance
        logs = [_log_common(a * a + (1 - a) ** 2, width).sum(axis=1) for width in kernel.widths]
        return np.logaddexp.reduce(logs) - np.log(len(logs))

    def frequencies(self, kernel: Kernel, columns: int, count: int, rng: np.random.Generator) -> Array:
        """Directions (p, M) from the Fourier transform of the kernel; bandwidths in turn."""
        width = np.resize(kernel.widths, count)
        return few_bits((rng.normal(size=(count, columns)) / np.sqrt(width)[:, None]).T)

    def row_features(self, frequencies: Array, X: Any) -> Array:
        """exp(i w'x); sums of few bits are exact in any order."""
        return waves(np.asarray(X @ frequencies))

    def component_features(self, kernel: Kernel, frequencies: Array, params: Chances) -> Array:
        """A product over columns of 1 - theta + theta exp(i w)."""
        value = np.ones((params.chance.shape[0], frequencies.shape[1]), dtype=np.complex128)
        turn = np.expm1(1j * frequencies)
        for d in range(params.chance.shape[1]):
            value *= 1 + params.chance[:, d : d + 1] * turn[d]
        value /= np.sqrt(frequencies.shape[1])
        return np.concatenate([value.real, value.imag], axis=1)


def _as_shares(counts: Array) -> Chances:
    """Probabilities of columns, none of them zero."""
    chance = np.maximum(counts / counts.sum(axis=1, keepdims=True), _LEAST)
    return Chances(chance / chance.sum(axis=1, keepdims=True))


def _as_chances(chance: Array) -> Chances:
    """Probabilities of ones, none of them certain."""
    return Chances(np.clip(chance, _LEAST, 1 - _LEAST))


def _rounded(shares: Any) -> Any:
    """Shares as multiples of ``_SHARE``."""
    if not sp.issparse(shares):
        return np.rint(shares / _SHARE) * _SHARE
    rounded = shares.copy()
    rounded.data = np.rint(rounded.data / _SHARE) * _SHARE
    return rounded


def _products(X: Any, Y: Any) -> Array:
    product = X @ Y.T
    return np.asarray(product.toarray() if sp.issparse(product) else product, dtype=np.float64)


def _squares(X: Any) -> Any:
    return X.multiply(X).tocsr() if sp.issparse(X) else X * X


def _log_common(agree: Array, width: float) -> Array:
    """log of rho + (1 - rho) P(equal)."""
    rho = np.exp(-0.5 / width)
    return np.log(rho + (1 - rho) * agree)


def _log_products(a: Array, b: Array, width: float) -> Array:
    """Sums over columns of logs for every pair, some at a time."""
    value, step = np.empty((a.shape[0], b.shape[0])), max(1, _PAIRS // max(b.size, 1))
    for start in range(0, a.shape[0], step):
        some = a[start : start + step, None]
        value[start : start + step] = _log_common(some * b + (1 - some) * (1 - b), width).sum(axis=2)
    return value
