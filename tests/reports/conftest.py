"""Fitted models that reports are about, fitted once, and their pages."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from kfree import (
    BPMeans,
    DPMeans,
    GibbsDPMixture,
    GibbsIBP,
    HDPMeans,
    HDPTopics,
    KernelDPMixture,
    KFeatures,
    VariationalDPMixture,
)
from kfree.reports import report
from support.pages import read
from support.report_rows import groups_of_rows, pictures

COLUMNS = ["Fresh", "Milk", "Grocery", "Frozen", "Paper", "Delicatessen"]


@pytest.fixture(scope="session")
def customers():
    """Rows of four groups, as a frame whose rows have names."""
    X = groups_of_rows()
    return pd.DataFrame(X, columns=COLUMNS, index=[f"customer {i}" for i in range(len(X))])


@pytest.fixture(scope="session")
def clusters(customers):
    return DPMeans(n_clusters=4).fit(customers)


@pytest.fixture(scope="session")
def clusters_page(clusters, customers, tmp_path_factory):
    """The file of a report on clusters, with a slider."""
    return report(clusters, customers, tmp_path_factory.mktemp("reports") / "clusters.html")


@pytest.fixture(scope="session")
def corpus():
    """Counts of words in documents of five topics, the words, and the documents' texts."""
    rng = np.random.default_rng(0)
    topics = np.repeat(np.eye(5), 20, axis=1) / 20
    shares = rng.dirichlet(np.full(5, 0.2), size=120)
    X = sp.csr_matrix(np.array([rng.multinomial(60, share @ topics) for share in shares]))
    return X, [f"word{j}" for j in range(100)], [f"Document {i} about things" for i in range(120)]


@pytest.fixture(scope="session")
def topics(corpus):
    return HDPTopics().fit(corpus[0]).name_topics(corpus[1])


@pytest.fixture(scope="session")
def topics_page(topics, corpus, tmp_path_factory):
    """The file of a report on topics."""
    return report(topics, corpus[0], tmp_path_factory.mktemp("reports") / "topics.html", texts=corpus[2])


@pytest.fixture
def page(tmp_path):
    """A report, as it is read."""

    def make(model, X, **more):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a report has nothing to warn of
            return read(report(model, X, tmp_path / "page.html", **more))

    return make


@pytest.fixture(scope="session")
def every_model(customers):
    """One fitted model of each kind, and its rows."""
    two, X = groups_of_rows((40, 30), 2), customers
    group = np.arange(len(X)) % 3
    short = {"n_samples": 20, "burn_in": 20, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # short chains
        return {
            "HDPMeans": (HDPMeans().fit(X, groups=group), X),
            "VariationalDPMixture": (VariationalDPMixture().fit(X), X),
            "VariationalDPMixture of two columns": (VariationalDPMixture().fit(two), two),
            "VariationalDPMixture of one column": (VariationalDPMixture(family="diag").fit(two[:, :1]), two[:, :1]),
            "VariationalDPMixture of counts": (
                VariationalDPMixture(family="poisson").fit(sp.csr_matrix(np.round(np.abs(X)))),
                sp.csr_matrix(np.round(np.abs(X))),
            ),
            "KernelDPMixture": (KernelDPMixture().fit(two), two),
            "GibbsDPMixture": (GibbsDPMixture(**short).fit(two), two),
            "KFeatures": (KFeatures(3, n_init=2).fit(X), X),
            "BPMeans": (BPMeans().fit(pictures()), pictures()),
            "GibbsIBP": (GibbsIBP(**short).fit(pictures()[:40]), pictures()[:40]),
        }
