"""HDPTopics where the documents are: Dask arrays and dataframes, on worker processes and without any."""

import os
import pickle
import signal
import threading
import time
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

import kfree
from kfree import HDPTopics
from kfree.rows import dask as rows_dask
from support.numbers import set_numbers
from support.small_corpora import planted

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
pytest.importorskip("distributed")

D, V = 3000, 120
X = planted(D=D, V=V, K=5, length=60)[0]
NUMBERS = (
    "components_",
    "topic_word_counts_",
    "topic_names_",
    "documents_per_topic_",
    "objective_trace_",
    "lam_global_",
    "n_iter_",
)


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """So many documents are many."""
    set_numbers(monkeypatch, "TOPICS", search_documents=600)


@pytest.fixture
def here(monkeypatch):
    """What a fit gives without a cluster, from blocks of other sizes."""
    with monkeypatch.context() as patch:
        patch.setattr(rows_dask, "_client", lambda: None)
        return HDPTopics().fit(da.from_array(X.toarray(), chunks=(1100, 50)))


def sparse_blocks(cuts, table=X):
    """CSR matrices as a Dask array."""
    edges = [0, *cuts, table.shape[0]]
    parts = [table[a:b] for a, b in pairwise(edges)]
    made = [da.from_delayed(dask.delayed(part), part.shape, meta=sp.csr_matrix((0, V))) for part in parts]
    return da.concatenate(made)


def assert_same(one, two, order=slice(None)):
    for name in NUMBERS:
        assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    for name in ("doc_labels_", "doc_topic_"):
        assert_array_equal(getattr(one, name).compute(), getattr(two, name).compute()[order], err_msg=name)


@pytest.mark.parametrize("cuts", [(1000, 2000), (1, 1, 2999)])
def test_sparse_and_dense_blocks_of_any_size_and_order_are_the_same_bits(cuts, client, here):
    order = np.random.default_rng(0).permutation(D)
    assert_same(HDPTopics().fit(sparse_blocks(cuts, X[order])), here, order)
    assert_same(HDPTopics().fit(da.from_array(X.toarray().astype("f4"), chunks=(700, -1))), here)


def test_attributes_of_documents_are_dask_arrays_of_known_blocks(client, here):
    model = HDPTopics().fit(sparse_blocks((1000,)))
    K, sizes = model.n_topics_, (1000, 2000)
    assert model.doc_topic_.chunks == (sizes, (K,))
    assert model.doc_topic_counts_.chunks == (sizes, (K,))
    assert model.doc_labels_.chunks == model.lam_local_.chunks == (sizes,)
    assert model.cell_labels_.shape == (X.nnz,)
    counts = model.doc_topic_counts_.compute()
    assert sp.issparse(counts)
    assert_array_equal(np.ravel(counts.sum(axis=1)), np.ravel(X.sum(axis=1)))
    assert_array_equal(model.doc_topic_.compute(), model.transform(X))
    labels = model.cell_labels_.compute()
    assert_array_equal(np.bincount(labels, X.data), model._hard_words.sum(axis=1).A1)
    model.merge_topics([[0, 1]])
    assert model.doc_topic_.chunks == model.doc_topic_counts_.chunks == (sizes, (K - 1,))
    assert_array_equal(np.bincount(model.doc_labels_.compute()), model.documents_per_topic_)
    assert_array_equal(np.bincount(model.cell_labels_.compute(), X.data), model._hard_words.sum(axis=1).A1)
    assert_array_equal(model.doc_topic_counts_.compute().sum(axis=1), counts.sum(axis=1))
    assert model.doc_topic_.compute().shape == (D, K - 1)
    assert HDPTopics().fit_transform(sparse_blocks((1500,))).shape == (D, K)


@pytest.mark.parametrize("many", [True, False])
def test_dataframes_give_words_their_names(many, client):
    names, n = [f"word{i}" for i in range(V)], D if many else 500
    frame = pd.DataFrame(X[:n].toarray(), columns=names).assign(w=np.arange(n) % 3)
    made = dd.from_pandas(frame, npartitions=4)
    made = made[made.w >= 0]  # nobody knows how many rows are left
    model = HDPTopics().fit(made[names], sample_weight=made["w"])
    assert_array_equal(model.feature_names_in_, names)
    assert model.topic_names_[0].startswith("word")
    assert model.top_words(3)[0, 0].startswith("word")
    assert sum(model.doc_topic_.chunks[0]) == n
    assert_array_equal(model.doc_labels_.compute(), model.predict(made[names]).compute())
    weight = frame["w"].to_numpy(dtype=float)
    assert_array_equal(model.documents_per_topic_, np.bincount(model.doc_labels_.compute(), weight, model.n_topics_))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(made[names[::-1]])


def test_few_documents_are_fitted_in_memory(client):
    few, whole = HDPTopics().fit(sparse_blocks((100,), X[:500])), HDPTopics().fit(X[:500])
    for name in NUMBERS:
        assert_array_equal(getattr(few, name), getattr(whole, name), err_msg=name)
    assert few.doc_topic_.chunks == ((100, 400), (whole.n_topics_,))
    assert_array_equal(few.doc_topic_.compute(), whole.doc_topic_)
    assert_array_equal(few.doc_topic_counts_.compute().toarray(), whole.doc_topic_counts_.toarray())
    assert_array_equal(few.cell_labels_.compute(), whole.cell_labels_)
    again = pickle.loads(pickle.dumps(few))
    assert not hasattr(again, "doc_topic_")
    assert_array_equal(again.merge_topics([[0, 1]]).components_, whole.merge_topics([[0, 1]]).components_)
    assert again.topic_sizes_ == pytest.approx(whole.topic_sizes_)
    assert again.objective_ == pytest.approx(whole.objective_)


def test_a_model_goes_anywhere(client, here, tmp_path):
    model = HDPTopics().fit(sparse_blocks((1000,)))
    model.save(tmp_path / "topics.kfree")
    for again in (pickle.loads(pickle.dumps(model)), kfree.load(tmp_path / "topics.kfree")):
        assert not hasattr(again, "doc_labels_")
        assert_array_equal(again.predict(X), here.doc_labels_.compute())
        assert again.explain() == here.explain()
        assert again.coherence() == here.coherence()
    for _ in range(100):  # workers are told to forget, and nobody waits for it
        if not any(client.run(_held).values()):
            break
        time.sleep(0.1)
    assert not any(client.run(_held).values())


def _held():
    import gc

    from kfree.rows import dask

    gc.collect()
    return len(dask._BESIDE)


def test_questions_about_other_documents_name_the_way_out(client, here):
    for ask in (here.score, here.representative_documents):
        with pytest.raises(TypeError, match=r"kfree\.read\(X\)"):
            ask(sparse_blocks((1000,)))
    with pytest.raises(TypeError, match="learns from one batch in memory"):
        here.partial_fit(sparse_blocks((1000,)))
    with pytest.raises(ValueError, match="search='paper'"):
        HDPTopics(search="paper", mix=0).fit(sparse_blocks((1000,)))


def test_a_worker_that_is_killed_changes_no_bit(client, here):
    stop, killed = threading.Event(), []

    def kill():
        rng = np.random.default_rng(3)
        for _ in range(2):
            if stop.wait(0.2 + 0.5 * rng.random()):
                return
            pids = list(client.run(os.getpid, on_error="ignore").values())
            killed.append(int(rng.choice([pid for pid in pids if isinstance(pid, int)])))
            os.kill(killed[-1], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        model = HDPTopics().fit(sparse_blocks(tuple(range(200, D, 200))))
    finally:
        stop.set()
        killer.join()
    assert killed
    assert_same(model, here)


def test_empty_blocks_and_blocks_of_unknown_size_are_blocks(client, here):
    made = da.from_array(X.toarray(), chunks=((0, 1000, 0, 2000, 0), (V,)))
    unknown = made.map_blocks(lambda rows: rows, chunks=((np.nan,) * 5, (V,)), dtype=float)
    for one in (made, unknown):
        model = HDPTopics().fit(one)
        assert_same(model, here)
        assert model.doc_topic_.chunks[0] == (0, 1000, 0, 2000, 0)
        assert sum(model.doc_labels_.chunks[0]) == D
        assert_array_equal(model.doc_topic_counts_.compute().toarray(), here.doc_topic_counts_.compute().toarray())
        assert_array_equal(model.cell_labels_.compute(), here.cell_labels_.compute())
