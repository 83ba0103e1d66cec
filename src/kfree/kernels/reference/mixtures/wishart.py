"""Posteriors of Gaussians with full covariance, and the sticks of their mixture."""

import numpy as np
from scipy.special import betaln, digamma, gammaln


def wishart_posterior(mass, first, second, about, prior_mean, prior_scale, beta, mean, scale, root, log_det):
    """Normal-Wishart posteriors for sums of 1, x - about, (x - about)(x - about)'; fills means, scale matrices B, upper
    triangles with B^-1 = root root', log |B|. Returns False, with rubbish, if rounding has made a B indefinite."""
    K, D = first.shape
    gap = np.divide(first, mass[:, None], out=np.zeros((K, D)), where=mass[:, None] > 0)
    away = about + gap - prior_mean
    share = (mass / (beta + mass))[:, None]
    mean[:] = prior_mean + share * away
    own = 0.5 * (second + second.transpose(0, 2, 1)) - mass[:, None, None] * gap[:, :, None] * gap[:, None, :]
    scale[:] = prior_scale + own + (beta * share)[:, :, None] * away[:, :, None] * away[:, None, :]
    try:
        lower = np.linalg.cholesky(scale)
    except np.linalg.LinAlgError:
        return False
    root[:] = np.triu(np.linalg.inv(lower).transpose(0, 2, 1))
    log_det[:] = 2 * np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
    return True


def _halves(nu, D):
    return (np.reshape(nu, (-1, 1)) - np.arange(D)) / 2


def wishart_form(beta, nu, root, log_det, scaled, offset):
    """Roots of expected precisions, and what E[log p] is less besides; fills ``scaled`` and ``offset``."""
    D = root.shape[1]
    scaled[:] = np.sqrt(nu)[:, None, None] * root
    expected = digamma(_halves(nu, D)).sum(axis=1) + D * np.log(2.0) - log_det
    offset[:] = 0.5 * (D / beta - expected)


def wishart_divergence(mean, beta, nu, root, log_det, prior_mean, prior_scale, prior, value):
    """KL of Normal-Wishart distributions from one, ``prior`` its beta, nu, log |B|; fills ``value``."""
    D = mean.shape[1]
    beta0, nu0, log_det0 = prior
    ratio = beta0 / beta
    gap = ((mean - prior_mean)[:, None, :] @ root)[:, 0]
    trace = (root * (prior_scale @ root)).sum(axis=(1, 2))
    value[:] = 0.5 * D * (ratio - np.log(ratio) - 1) + 0.5 * beta0 * nu * (gap * gap).sum(axis=1)
    value += 0.5 * nu0 * (log_det - log_det0) + 0.5 * (nu - nu0) * digamma(_halves(nu, D)).sum(axis=1)
    value += 0.5 * nu * (trace - D) + gammaln(_halves(nu0, D)).sum() - gammaln(_halves(nu, D)).sum(axis=1)


def best_sticks(sizes, a1, a2, sticks):
    """Fill the best sticks (T, 2) for sizes (T + 1,), the last the tail's."""
    sticks[:, 0], sticks[:, 1] = a1 + sizes[:-1], a2 + np.cumsum(sizes[::-1])[::-1][1:]


def stick_terms(sticks, a1, a2, expected):
    """Fill expected log-weights (T + 1,) for sticks (T, 2); returns their divergence from the prior Beta(a1, a2)."""
    g1, g2 = sticks.T
    whole, prior = digamma(g1 + g2), digamma(a1 + a2)
    here, past = digamma(g1) - whole, digamma(g2) - whole
    expected[:-1] = here
    expected[-1] = digamma(a1) - prior - np.log(-np.expm1(digamma(a2) - prior))
    expected[1:] += np.cumsum(past)
    return float((betaln(a1, a2) - betaln(g1, g2) + (g1 - a1) * here + (g2 - a2) * past).sum())


def wishart_view(
    mean, beta, nu, root, log_det, prior_mean, prior_scale, prior_root, prior, sticks, weights, scaled, offset, expected
):
    """The forms of components and, last, of the prior; expected log-weights; returns the divergence of all from their
    priors."""
    T, own = mean.shape[0], np.empty(mean.shape[0])
    wishart_form(beta, nu, root, log_det, scaled[:T], offset[:T])
    wishart_form(prior[0:1], prior[1:2], prior_root, prior[2:3], scaled[T:], offset[T:])
    wishart_divergence(mean, beta, nu, root, log_det, prior_mean, prior_scale, prior, own)
    return stick_terms(sticks, weights[0], weights[1], expected) + float(own.sum())
