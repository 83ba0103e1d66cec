"""KFeatures, BPMeans and StepwiseKFeatures on Dask arrays and dataframes, on worker processes and without any."""

import os
import pickle
import signal
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import kfree
from kfree import BPMeans, KFeatures, StepwiseKFeatures

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
pytest.importorskip("distributed")

N = 110_000  # longer than what is fitted in memory


def rows(n=N, p=4, K=3, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.random((n, K)) < 0.4
    return (Z @ (4 * rng.normal(size=(K, p))) + rng.normal(size=(n, p))).astype("f4")


X = rows()
ASKED = {"n_init": 2, "random_state": 0}


@pytest.fixture(scope="module")
def spread(client):
    return KFeatures(3, **ASKED).fit(da.from_array(X, chunks=(30_000, -1)))


def assert_same(one, two):
    for name in ("components_", "counts_", "inertia_", "objective_trace_", "explained_"):
        assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    assert_array_equal(one.Z_.compute(), two.Z_.compute())


@pytest.mark.parametrize("chunks", [(50_000, -1), ((1, 44_999, 0, 20_000, 45_000), (3, 1))])
def test_chunks_leave_no_trace(chunks, client, spread):
    again = KFeatures(3, **ASKED).fit(da.from_array(X, chunks=chunks))
    assert_same(again, spread)
    assert again.Z_.chunks[0] == da.from_array(X, chunks=chunks).chunks[0]
    assert again.Z_.dtype == np.uint8


def test_nor_does_the_lack_of_a_cluster(spread, monkeypatch):
    monkeypatch.setattr("kfree.rows.dask._client", lambda: None)
    assert_same(KFeatures(3, **ASKED).fit(da.from_array(X, chunks=(60_000, -1))), spread)


def test_memory_has_about_the_same_features(spread):
    whole = KFeatures(3, **ASKED).fit(X)
    assert spread.inertia_ < 1.01 * whole.inertia_
    assert spread.components_.dtype == np.float32
    made = da.from_array(X, chunks=(30_000, -1))
    assert_allclose(spread.score(made), spread.score(X), rtol=1e-9)
    assert_allclose(spread.score(made), -spread.inertia_, rtol=1e-9)
    assert_array_equal(spread.transform(made).compute(), spread.Z_.compute())
    assert "features, as asked for" in spread.explain()


def test_unknown_and_empty_chunks_and_weights_of_a_dataframe(client):
    weight = np.random.default_rng(2).integers(0, 3, N).astype(float)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(w=weight)
    made = dd.from_pandas(frame, npartitions=3)
    made = dd.concat([made[made.a > -1e9], made[made.a > 1e9]])
    names = list("abcd")
    one = BPMeans(4e5, n_init=1)
    Z = one.fit_transform(made[names], sample_weight=made["w"])
    assert Z is one.Z_
    assert not any(np.isnan(size) for size in Z.chunks[0])
    two = BPMeans(4e5, n_init=1).fit(da.from_array(X, chunks=(60_000, -1)), sample_weight=weight)
    assert_same(one, two)
    assert_array_equal(one.feature_names_in_, names)
    assert_array_equal(one.transform(made[names]).compute(), Z.compute())


def test_sparse_blocks(client):
    table = sp.csr_matrix(np.where(np.abs(X) > 2, X, 0))
    made = []
    for cuts in ([50_000, 90_000], [1000]):
        parts = [table[a:b] for a, b in zip([0, *cuts], [*cuts, N])]
        blocks = [da.from_delayed(_delayed(part), part.shape, meta=sp.csr_matrix((0, 4))) for part in parts]
        made.append(KFeatures(3, **ASKED).fit(da.concatenate(blocks)))
    assert_same(*made)


def test_a_model_goes_anywhere(client, spread, tmp_path):
    again = pickle.loads(pickle.dumps(spread))
    assert not hasattr(again, "Z_")
    spread.save(tmp_path / "model.kfree")
    for model in (again, kfree.load(tmp_path / "model.kfree")):
        assert_array_equal(model.transform(X[:99]), spread.Z_[:99].compute())
        assert model.explain() == spread.explain()
        assert_allclose(model.inverse_transform(model.transform(X[:9])), X[:9], atol=6)
        with pytest.raises(ValueError, match="Pass some"):
            kfree.FeaturesDisplay.from_estimator(model, kind="together")
        pytest.importorskip("matplotlib").use("Agg")
        kfree.FeaturesDisplay.from_estimator(model, X=X[:99], kind="together")


def test_few_rows_are_fitted_in_memory(client):
    frame = pd.DataFrame(X[:3000], columns=list("abcd"))
    few, whole = (KFeatures(3, **ASKED).fit(made) for made in (dd.from_pandas(frame, npartitions=2), frame))
    assert_array_equal(few.components_, whole.components_)
    assert_array_equal(few.Z_.compute(), whole.Z_)
    assert_array_equal(few.feature_names_in_, list("abcd"))


def test_growing(client):
    made = da.from_array(X, chunks=(60_000, -1))
    model = StepwiseKFeatures(4e5, n_init=1, max_components=5).fit(made)
    assert model.path_.best(4e5) == model.n_components_ == 3
    assert_allclose(model.path_.inertia[3], model.inertia_, rtol=0.05)


def test_a_worker_that_is_killed_changes_no_bit(client, spread):
    made, stop = da.from_array(X, chunks=(10_000, -1)), threading.Event()

    def kill():
        rng = np.random.default_rng(3)
        if not stop.wait(0.3 + rng.random()):
            pids = list(client.run(os.getpid, on_error="ignore").values())
            os.kill(int(rng.choice([pid for pid in pids if isinstance(pid, int)])), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        again = KFeatures(3, **ASKED).fit(made)
    finally:
        stop.set()
        killer.join()
    assert_same(again, spread)


def test_what_visits_rows_is_refused(client):
    made = da.from_array(X, chunks=(60_000, -1))
    with pytest.raises(ValueError, match=r"kfree\.read"):
        BPMeans(4e5, algorithm="collapsed").fit(made)
    with pytest.raises(ValueError, match=r"kfree\.read"):
        KFeatures(3, init=np.ones((N, 3))).fit(made)


def _delayed(part):
    import dask

    return dask.delayed(part, pure=False)
