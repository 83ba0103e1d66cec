"""Fitted models that displays draw, fitted once."""

import warnings

import matplotlib
import numpy as np
import pandas as pd
import pytest

from kfree import DPMeans, GibbsDPMixture, HDPTopics, StepwiseKFeatures, VariationalDPMixture, lam_path

matplotlib.use("Agg")

COLUMNS = ["Fresh", "Milk", "Grocery", "Frozen", "Detergents_Paper", "Delicatessen"]


@pytest.fixture(autouse=True)
def closed():
    yield
    matplotlib.pyplot.close("all")


@pytest.fixture(scope="session")
def customers():
    """Rows of four groups, as a frame."""
    rng = np.random.default_rng(0)
    centres = 3.0 * rng.normal(size=(4, 6))
    return pd.DataFrame(
        np.vstack([rng.normal(c, 1.0, (n, 6)) for c, n in zip(centres, (90, 60, 40, 20))]), columns=COLUMNS
    )


@pytest.fixture(scope="session")
def clusters(customers):
    return DPMeans(n_clusters=4).fit(customers)


@pytest.fixture(scope="session")
def path(customers):
    return lam_path(customers, max_clusters=8)


@pytest.fixture(scope="session")
def mixture(customers):
    return VariationalDPMixture().fit(customers)


@pytest.fixture(scope="session")
def sampler(customers):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of chains as short as these
        return GibbsDPMixture(n_samples=40, burn_in=20, random_state=0).fit(customers.iloc[:, :2])


@pytest.fixture(scope="session")
def topics():
    """Five topics of words with names."""
    rng = np.random.default_rng(0)
    weights = np.repeat(np.eye(5), 12, axis=1) * np.tile(1.0 / np.arange(1, 13), 5)
    X = np.array([rng.multinomial(90, weights[j % 5] / weights[j % 5].sum()) for j in range(120)])
    words = [f"{stem}{ending}" for stem in ("bank", "star", "gene", "song", "goal") for ending in "abcdefghijkl"]
    return HDPTopics(n_topics=5).fit(pd.DataFrame(X, columns=words))


@pytest.fixture(scope="session")
def parts():
    """Pictures of 6 x 8 dots that are sums of three parts."""
    rng = np.random.default_rng(0)
    shapes = np.zeros((3, 6, 8))
    shapes[0, :3, :3] = shapes[1, 3:, 4:] = shapes[2, 1:4, 5:8] = 4.0
    return rng.integers(2, size=(80, 3)) @ shapes.reshape(3, 48) + rng.normal(size=(80, 48)) / 5


@pytest.fixture(scope="session")
def features(parts):
    return StepwiseKFeatures(max_components=5, n_init=2).fit(parts)
