"""DPMeans where the rows are: Dask arrays and dataframes, on worker processes and without any."""

import os
import pickle
import signal
import threading
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

import kfree
from kfree import DPMeans

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
pytest.importorskip("distributed")

N = 130_000  # longer than what is fitted in memory


def rows(n=N, p=4, K=9, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.normal(0, 9, size=(K, p))[rng.integers(K, size=n)] + rng.normal(size=(n, p))).astype("f4")


X = rows()


@pytest.fixture(scope="module")
def whole():
    return {ask: DPMeans(**kind).fit(X) for ask, kind in ASKS.items()}


#: The radius opens clusters in passes over all rows, and at extremes.
ASKS = {"auto": {}, "n_clusters": {"n_clusters": 7}, "radius": {"radius": 9.0, "max_iter": 40}}


def assert_same(spread, model, order=None):
    labels = spread.labels_.compute()
    assert labels.dtype == np.int32
    assert_array_equal(labels, model.labels_ if order is None else model.labels_[order])
    assert_array_equal(spread.cluster_centers_, model.cluster_centers_)
    assert_array_equal(spread.objective_trace_, model.objective_trace_)
    for name in ("inertia_", "objective_", "lam_", "lam_window_", "radius_"):
        assert getattr(spread, name) == getattr(model, name), name


@pytest.mark.parametrize("ask", ASKS)
class TestAnswersAreThoseOfMemory:
    @pytest.mark.parametrize("chunks", [(50_000, -1), ((1, 64_999, 0, 20_000, 45_000), (3, 1))])
    def test_for_any_chunks(self, ask, chunks, client, whole):
        spread = DPMeans(**ASKS[ask]).fit(da.from_array(X, chunks=chunks))
        assert_same(spread, whole[ask])
        assert sum(spread.labels_.chunks[0]) == N
        assert_array_equal(spread.probabilities_.compute(), whole[ask].probabilities_)

    def test_for_any_order_of_the_rows(self, ask, client, whole):
        order = np.random.default_rng(1).permutation(N)
        assert_same(DPMeans(**ASKS[ask]).fit(da.from_array(X[order], chunks=(40_000, 2))), whole[ask], order)

    def test_without_a_cluster(self, ask, whole, monkeypatch):
        monkeypatch.setattr("kfree.rows.dask._client", lambda: None)
        assert_same(DPMeans(**ASKS[ask]).fit(da.from_array(X, chunks=(60_000, -1))), whole[ask])


def test_unknown_and_empty_chunks_and_weights_of_a_dataframe(client):
    weight = np.random.default_rng(2).integers(0, 3, N).astype(float)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(w=weight)
    made = dd.from_pandas(frame, npartitions=5)
    made = made[made.a > -1e9]  # nobody knows how many rows are left
    made = dd.concat([made, made[made.a > 1e9]])
    names = list("abcd")
    spread = DPMeans(radius=9.0).fit(made[names], sample_weight=made["w"])
    model = DPMeans(radius=9.0).fit(frame[names], sample_weight=weight)
    assert_same(spread, model)
    assert_array_equal(spread.feature_names_in_, names)
    said = spread.predict(made[names])
    assert_array_equal(said.compute(), model.labels_)
    assert said.divisions == made.divisions
    assert_array_equal(spread.transform(made[names]).compute().shape, (N, model.n_clusters_))
    with pytest.raises(ValueError, match="feature names"):
        spread.predict(made[names[::-1]])


def test_sparse_blocks(client):
    table = sp.random(120_000, 12, density=0.3, format="csr", random_state=0, dtype=np.float64)
    table.data = np.ceil(9 * table.data)
    parts = [table[:50_000], table[50_000:90_000], table[90_000:]]
    blocks = [da.from_delayed(_delayed(part), part.shape, meta=sp.csr_matrix((0, 12))) for part in parts]
    spread = DPMeans(n_clusters=4, divergence="poisson", smoothing=0.1).fit(da.concatenate(blocks))
    assert_same(spread, DPMeans(n_clusters=4, divergence="poisson", smoothing=0.1).fit(table))


def _delayed(part):
    import dask

    return dask.delayed(part)


def test_few_rows_are_fitted_in_memory_and_labels_have_their_chunks(client):
    few = X[:5000]
    spread, model = DPMeans().fit(da.from_array(few, chunks=(1500, -1))), DPMeans().fit(few)
    assert_same(spread, model)
    assert spread.labels_.chunks[0] == (1500, 1500, 1500, 500)
    assert DPMeans(algorithm="serial", radius=9.0).fit(da.from_array(few)).n_clusters_ > 1


def test_a_model_goes_anywhere(client, whole, tmp_path):
    spread = DPMeans(n_clusters=7).fit(da.from_array(X, chunks=(50_000, -1)))
    again = pickle.loads(pickle.dumps(spread))
    assert not hasattr(again, "labels_")
    assert_array_equal(again.predict(X), whole["n_clusters"].labels_)
    spread.save(tmp_path / "model.kfree")
    assert_array_equal(kfree.load(tmp_path / "model.kfree").predict(X[:99]), whole["n_clusters"].labels_[:99])
    until = time.monotonic() + 20  # workers are told so by tasks that nobody waits for
    while any(client.run(_held).values()) and time.monotonic() < until:
        time.sleep(0.2)
    assert not any(client.run(_held).values())  # workers keep nothing


def _held():
    import gc

    from kfree.rows import dask

    gc.collect()
    return len(dask._BESIDE)


def test_what_a_model_says_of_blocks_is_what_it_says_of_rows(client, whole):
    model, made = whole["auto"], da.from_array(X, chunks=(60_000, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        others = [kfree.VariationalDPMixture(max_time=3).fit(X[:3000]), kfree.KFeatures(2, n_init=1).fit(X[:300])]
    assert_array_equal(model.decision_function(made).compute(), model.decision_function(X))
    assert_array_equal(model.transform(made).compute(), model.transform(X))
    assert_array_equal(others[0].predict_proba(made, tail=True).compute(), others[0].predict_proba(X, tail=True))
    assert_array_equal(others[0].score_samples(made).compute(), others[0].score_samples(X))
    assert_array_equal(others[1].transform(made[:999]).compute(), others[1].transform(X[:999]))


class TestFilesHere:
    """Other estimators take the rows from a file, which is made block by block."""

    def test_arrays(self, client):
        with kfree.read(da.from_array(X[:4000], chunks=(999, 3))) as source:
            assert source.shape == (4000, 4)
            model = kfree.VariationalDPMixture().fit(source)
        assert_array_equal(model.predict(X[:99]), kfree.VariationalDPMixture().fit(X[:4000]).predict(X[:99]))

    def test_frames(self, client, tmp_path):
        pytest.importorskip("pyarrow")
        frame = pd.DataFrame(X[:4000], columns=list("abcd")).assign(w=2.0, name=[f"row {i}" for i in range(4000)])
        with kfree.read(dd.from_pandas(frame, npartitions=3), id="name", weight="w") as source:
            model = DPMeans(n_clusters=3).fit(source)
            written = pd.read_csv(kfree.write(model, source, tmp_path / "labels.csv"))
        assert written["name"].tolist() == frame["name"].tolist()
        assert_array_equal(written["label"], model.labels_)

    @pytest.mark.parametrize("model", [kfree.GibbsIBP(), kfree.HDPMeans()])
    def test_the_others_name_the_way_out(self, model):
        with pytest.raises(TypeError, match=r"kfree\.read\(X\)"):
            model.fit(da.ones((50, 3)))


class TestFaults:
    def test_a_worker_that_is_killed_changes_no_bit(self, client, whole):
        made, stop = da.from_array(X, chunks=(20_000, -1)), threading.Event()

        def kill():
            rng = np.random.default_rng(3)
            for _ in range(2):
                if stop.wait(0.3 + rng.random()):
                    return
                pids = list(client.run(os.getpid, on_error="ignore").values())
                os.kill(int(rng.choice([pid for pid in pids if isinstance(pid, int)])), signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            spread = DPMeans(radius=9.0, tol=0.0, max_iter=60).fit(made)
        finally:
            stop.set()
            killer.join()
        assert_same(spread, DPMeans(radius=9.0, tol=0.0, max_iter=60).fit(X))

    def test_a_block_that_cannot_be_made_is_an_error_that_says_why(self, client):
        def corrupt(block, block_info=None):
            if block_info and block_info[0]["chunk-location"][0] == 1:
                raise OSError("part-1.parquet is corrupt")
            return block

        with pytest.raises(OSError, match=r"part-1\.parquet is corrupt"):
            DPMeans().fit(da.from_array(X, chunks=(50_000, -1)).map_blocks(corrupt, dtype=X.dtype))

    def test_bad_rows_are_named_with_their_block(self, client):
        bad = X.copy()
        bad[60_001, 2] = np.nan
        with pytest.raises(ValueError, match=r"Block 1 of X .*X\[10001, 2\]"):
            DPMeans().fit(da.from_array(bad, chunks=(50_000, -1)))

    def test_weights_of_other_lengths_are_an_error(self, client):
        with pytest.raises(ValueError, match="sample_weight has shape"):
            DPMeans().fit(da.from_array(X, chunks=(50_000, -1)), sample_weight=da.ones(N - 1, chunks=50_000))

    def test_no_time_gives_the_best_so_far(self, client):
        begun, made = time.monotonic(), da.from_array(X, chunks=(50_000, -1))
        with pytest.warns(UserWarning, match="max_time"):
            model = DPMeans(radius=0.3, max_time=0.5).fit(made)
        assert time.monotonic() - begun < 30
        assert_array_equal(model.labels_.compute(), model.predict(X))

    def test_a_cluster_without_workers_is_an_error_within_a_minute(self, monkeypatch):
        import distributed

        monkeypatch.setattr("kfree.rows.dask._PATIENCE", 1.0)
        with (
            distributed.LocalCluster(n_workers=0, dashboard_address=None, silence_logs=50) as cluster,
            distributed.Client(cluster),
            pytest.raises(RuntimeError, match="no worker is there"),
        ):
            DPMeans().fit(da.from_array(X, chunks=(50_000, -1)))
