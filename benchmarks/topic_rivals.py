"""Other topic models, where they are installed: tomotopy, gensim (extra ``bench``), scikit-learn."""

import warnings
from importlib.util import find_spec

import numpy as np
from sklearn.decomposition import LatentDirichletAllocation

from benchmarks import THREADS
from benchmarks.corpora import token_lists

ETA = 0.05


def installed(package):
    """Whether a rival can be run."""
    return find_spec(package) is not None


def _topics(model, K, V):
    words = np.array([int(word) for word in model.used_vocabs])
    mean = np.full((K, V), 1e-12)
    for row, k in enumerate(_live(model)):
        mean[row, words] = model.get_topic_word_dist(k)
    return mean / mean.sum(axis=1, keepdims=True)


def _live(model):
    return [k for k in range(model.k) if not hasattr(model, "is_live_topic") or model.is_live_topic(k)]


def tomotopy_model(kind, X, seed=0, **options):
    """A model of tomotopy that has read the documents."""
    import tomotopy

    model = getattr(tomotopy, kind)(seed=seed + 1, **options)
    for tokens in token_lists(X):
        model.add_doc(tokens)
    model.train(0)
    return model


def tomotopy_lda(X, K, seed, sweeps, eta=ETA):
    """Topics (K, V) and dominant topics of the documents."""
    model = tomotopy_model("LDAModel", X, seed, k=K, alpha=0.1, eta=eta)
    sweep(model, sweeps)
    return _topics(model, K, X.shape[1]), np.array([np.argmax(doc.get_topic_dist()) for doc in model.docs])


def tomotopy_hdp(X, seed, sweeps):
    """Topics (live ones, V) and dominant topics of the documents."""
    model = tomotopy_model("HDPModel", X, seed, eta=0.01)
    sweep(model, sweeps)
    return _topics(model, len(_live(model)), X.shape[1]), np.array([np.argmax(d.get_topic_dist()) for d in model.docs])


def sweep(model, sweeps):
    """Gibbs sweeps with the threads everybody has."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.train(sweeps, workers=THREADS)


def gensim_hdp(X):
    """Topics (150, V) of gensim's HdpModel, one pass."""
    from gensim.matutils import Sparse2Corpus
    from gensim.models import HdpModel

    corpus = Sparse2Corpus(X, documents_columns=False)
    model = HdpModel(corpus, {w: str(w) for w in range(X.shape[1])}, random_state=0)
    return model.get_topics()


def sklearn_lda(X, K, seed, method="online", passes=10):
    """Topics (K, V) and dominant topics of scikit-learn's LDA."""
    model = LatentDirichletAllocation(
        K, learning_method=method, max_iter=passes, topic_word_prior=ETA, random_state=seed, n_jobs=THREADS
    )
    shares = model.fit_transform(X)
    return model.components_ / model.components_.sum(axis=1, keepdims=True), shares.argmax(axis=1)
