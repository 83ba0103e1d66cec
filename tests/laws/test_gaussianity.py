"""Rows that are Gaussian pass for Gaussian; mixtures do not, and what they lack is about what a mixture gains."""

import numpy as np
import pytest

from kfree.inference.variational.gaussianity import negentropy


@pytest.mark.parametrize("D", [1, 2, 8, 16])
@pytest.mark.parametrize("m", [60, 500, 20_000])
def test_gaussian_rows_lack_nothing(D, m):
    rng = np.random.default_rng([D, m])
    white, weight = rng.normal(size=(m, D)), rng.gamma(0.5, size=m)
    assert negentropy(white, np.ones(m)) == negentropy(white, weight) == 0.0
    assert negentropy(white * 0.9, np.ones(m)) == 0.0
    # a few rows of other components may be among them
    white[: m // 50] += 100.0
    assert negentropy(white, np.ones(m)) == 0.0


@pytest.mark.parametrize("D", [1, 2, 8, 16])
def test_mixtures_lack_something(D):
    rng = np.random.default_rng(D)
    side = np.where(rng.random((4000, 1)) < 0.3, 1.4, -0.6) * (np.arange(D) == 0)
    white = side + rng.normal(size=(4000, D)) * np.where(np.arange(D) == 0, 0.4, 1.0)
    lost = negentropy(white, np.ones(4000))
    assert lost > 0.005
    assert negentropy(np.repeat(white, 2, axis=0), np.ones(8000)) == pytest.approx(lost)
    assert negentropy(white, np.full(4000, 2.0)) == pytest.approx(lost)


def test_rows_that_do_not_differ():
    assert negentropy(np.zeros((5, 2)), np.ones(5)) == 0.0
    assert negentropy(np.full((5, 2), 1e9), np.ones(5)) == 0.0
