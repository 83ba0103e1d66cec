"""Mixtures and scores where the rows are: Dask arrays and dataframes, on worker processes and without any."""

import os
import pickle
import signal
import threading
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import kfree
from kfree import DPMeans, KernelDPMixture, VariationalDPMixture

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
pytest.importorskip("distributed")

N = 110_000  # longer than what is fitted in memory
ASKED = {"features": 200, "n_candidates": 20, "random_state": 0}


def rows(n=N, p=3, K=5, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.normal(0, 9, size=(K, p))[rng.integers(K, size=n)] + rng.normal(size=(n, p))).astype("f4")


X = rows()


@pytest.fixture(scope="module")
def spread(client):
    return KernelDPMixture(**ASKED).fit(da.from_array(X, chunks=(30_000, -1)))


def assert_same(one, two):
    for name in ("weights_", "means_", "covariances_", "support_", "bandwidth_", "objective_", "mmd2_", "ridge_"):
        assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    assert_array_equal(one.labels_.compute(), two.labels_.compute())


class TestKernelMixtures:
    @pytest.mark.parametrize("chunks", [(50_000, -1), ((1, 44_999, 0, 20_000, 45_000), (2, 1))])
    def test_chunks_leave_no_trace(self, chunks, client, spread):
        again = KernelDPMixture(**ASKED).fit(da.from_array(X, chunks=chunks))
        assert_same(again, spread)
        assert sum(again.labels_.chunks[0]) == N

    def test_nor_does_the_lack_of_a_cluster(self, spread, monkeypatch):
        monkeypatch.setattr("kfree.rows.dask._client", lambda: None)
        assert_same(KernelDPMixture(**ASKED).fit(da.from_array(X, chunks=(60_000, -1))), spread)

    def test_memory_has_the_same_mixture(self, spread):
        whole = KernelDPMixture(**ASKED).fit(X)
        assert_array_equal(spread.support_, whole.support_)
        assert_allclose(spread.weights_, whole.weights_, atol=1e-6)
        assert_allclose(spread.score_samples(X[:999]), whole.score_samples(X[:999]), atol=1e-5)
        assert_array_equal(spread.labels_.compute(), whole.labels_)

    def test_unknown_and_empty_chunks_and_weights_of_a_dataframe(self, client):
        weight = np.random.default_rng(2).integers(0, 3, N).astype(float)
        frame = pd.DataFrame(X, columns=list("abc")).assign(w=weight)
        made = dd.from_pandas(frame, npartitions=3)
        made = dd.concat([made[made.a > -1e9], made[made.a > 1e9]])
        names = list("abc")
        one = KernelDPMixture(**ASKED)
        labels = one.fit_predict(made[names], sample_weight=made["w"])
        assert labels is one.labels_
        two = KernelDPMixture(**ASKED).fit(da.from_array(X, chunks=(60_000, -1)), sample_weight=weight)
        assert_same(one, two)
        assert_array_equal(one.feature_names_in_, names)
        assert_array_equal(one.predict(made[names]).compute(), labels.compute())
        with pytest.raises(ValueError, match="feature names"):
            one.score(made[names[::-1]])

    def test_sparse_blocks(self, client):
        table = sp.random(110_000, 12, density=0.3, format="csr", random_state=0, dtype=np.float64)
        table.data = np.ceil(9 * table.data)
        table = table[np.asarray(table.sum(axis=1)).ravel() > 0]
        made = []
        for cuts in ([50_000, 90_000], [1000]):
            parts = [table[a:b] for a, b in zip([0, *cuts], [*cuts, table.shape[0]])]
            blocks = [da.from_delayed(_delayed(part), part.shape, meta=sp.csr_matrix((0, 12))) for part in parts]
            made.append(KernelDPMixture(family="multinomial", **ASKED).fit(da.concatenate(blocks)))
        assert_array_equal(made[0].weights_, made[1].weights_)
        assert_array_equal(made[0].labels_.compute(), made[1].labels_.compute())

    def test_a_model_goes_anywhere(self, client, spread, tmp_path):
        again = pickle.loads(pickle.dumps(spread))
        assert not hasattr(again, "labels_")
        spread.save(tmp_path / "model.kfree")
        for model in (again, kfree.load(tmp_path / "model.kfree")):
            assert_array_equal(model.predict(X[:99]), spread.labels_[:99].compute())
        assert spread.mmd_test(X[:500]).pvalue > 0.001
        again.partial_fit(X[:5000])

    def test_few_rows_are_fitted_in_memory(self, client):
        frame = pd.DataFrame(X[:3000], columns=list("abc"))
        few, whole = (
            KernelDPMixture(random_state=0).fit(made) for made in (dd.from_pandas(frame, npartitions=2), frame)
        )
        assert_array_equal(few.weights_, whole.weights_)
        assert_array_equal(few.labels_.compute(), whole.labels_)
        assert_array_equal(few.feature_names_in_, list("abc"))

    def test_a_worker_that_is_killed_changes_no_bit(self, client, spread):
        made, stop = da.from_array(X, chunks=(10_000, -1)), threading.Event()
        killer = threading.Thread(target=kill_two, args=(client, stop))
        killer.start()
        try:
            again = KernelDPMixture(**ASKED).fit(made)
        finally:
            stop.set()
            killer.join()
        assert_same(again, spread)

    def test_the_kernel_itself_is_refused(self, client):
        with pytest.raises(ValueError, match="features=None"):
            KernelDPMixture(features=None).fit(da.from_array(X, chunks=(60_000, -1)))


def kill_two(client, stop, pause=0.5):
    """Kill two workers of a cluster, some time after the other."""
    rng = np.random.default_rng(3)
    for _ in range(2):
        if stop.wait(pause * (1 + 2 * rng.random())):
            return
        pids = list(client.run(os.getpid, on_error="ignore").values())
        os.kill(int(rng.choice([pid for pid in pids if isinstance(pid, int)])), signal.SIGKILL)


VARIED = ("weights_", "means_", "covariances_", "free_energy_trace_", "free_energy_", "prior_penalty_", "n_iter_")


def assert_same_bits(one, two):
    for name in VARIED:
        assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    assert_array_equal(one.labels_.compute(), two.labels_.compute())


def assert_same_but_for_rounding(one, two):
    assert one.n_components_ == two.n_components_
    assert_allclose(one.free_energy_, two.free_energy_, rtol=1e-9)
    assert_allclose(one.means_, two.means_, rtol=1e-6, atol=1e-6)
    assert np.mean(one.labels_.compute() != two.labels_.compute()) < 1e-3


@pytest.fixture(scope="module")
def varied(client):
    return VariationalDPMixture().fit(da.from_array(X, chunks=(30_000, -1)))


class TestVariationalMixtures:
    @pytest.mark.parametrize("chunks", [(50_000, -1), ((1, 44_999, 0, 20_000, 45_000), (2, 1))])
    def test_other_chunks_change_no_more_than_rounding(self, chunks, client, varied):
        again = VariationalDPMixture().fit(da.from_array(X, chunks=chunks))
        assert_same_but_for_rounding(again, varied)
        assert sum(again.labels_.chunks[0]) == N

    def test_the_lack_of_a_cluster_changes_no_bit(self, varied, monkeypatch):
        monkeypatch.setattr("kfree.rows.dask._client", lambda: None)
        assert_same_bits(VariationalDPMixture().fit(da.from_array(X, chunks=(30_000, -1))), varied)

    def test_memory_has_the_same_groups(self, varied):
        whole = VariationalDPMixture(match_to=varied).fit(X)
        assert varied.n_components_ == whole.n_components_ == 5
        assert_allclose(varied.free_energy_, whole.free_energy_, rtol=1e-3)
        assert np.mean(varied.labels_.compute() != whole.labels_) < 1e-3

    def test_unknown_and_empty_chunks_and_weights_of_a_dataframe(self, client):
        weight, names = np.random.default_rng(2).integers(0, 3, N).astype(float), list("abc")
        made = dd.from_pandas(pd.DataFrame(X, columns=names).assign(w=weight), npartitions=3)
        made = dd.concat([made[made.a > -1e9], made[made.a > 1e9]])
        one = VariationalDPMixture()
        labels = one.fit_predict(made[names], sample_weight=made["w"])
        assert labels is one.labels_
        two = VariationalDPMixture().fit(da.from_array(X, chunks=(60_000, -1)), sample_weight=weight)
        assert_same_but_for_rounding(one, two)
        assert_array_equal(one.feature_names_in_, names)
        assert_array_equal(one.predict(made[names]).compute(), labels.compute())

    def test_sparse_blocks(self, client):
        chance = np.random.default_rng(0).dirichlet(np.full(12, 0.3), size=4)
        table = np.random.default_rng(1).poisson(20 * chance[np.arange(N) % 4]).astype(float)
        table, made = sp.csr_matrix(table), []
        for cuts in ([50_000, 90_000], [1000]):
            parts = [table[a:b] for a, b in zip([0, *cuts], [*cuts, N])]
            blocks = [da.from_delayed(_delayed(part), part.shape, meta=sp.csr_matrix((0, 12))) for part in parts]
            made.append(VariationalDPMixture(family="multinomial").fit(da.concatenate(blocks)))
        assert_same_but_for_rounding(*made)
        assert made[0].n_components_ == 4

    def test_a_model_goes_anywhere(self, client, varied, tmp_path):
        again = pickle.loads(pickle.dumps(varied))
        assert not hasattr(again, "labels_")
        varied.save(tmp_path / "model.kfree")
        for model in (again, kfree.load(tmp_path / "model.kfree")):
            assert_array_equal(model.predict(X[:99]), varied.labels_[:99].compute())
            assert model.free_energy_ == varied.free_energy_
            assert model.sample_parameters()["means"].shape == (1, 5, 3)

    def test_few_rows_are_fitted_in_memory(self, client):
        frame = pd.DataFrame(X[:3000], columns=list("abc"))
        few, whole = (VariationalDPMixture().fit(made) for made in (dd.from_pandas(frame, npartitions=2), frame))
        assert_array_equal(few.free_energy_trace_, whole.free_energy_trace_)
        assert_array_equal(few.labels_.compute(), whole.labels_)

    def test_a_worker_that_is_killed_changes_no_bit(self, client):
        made, stop = da.from_array(X, chunks=(10_000, -1)), threading.Event()
        before = VariationalDPMixture().fit(made)
        killer = threading.Thread(target=kill_two, args=(client, stop, 0.15))
        killer.start()
        try:
            again = VariationalDPMixture().fit(made)
        finally:
            stop.set()
            killer.join()
        assert_same_bits(again, before)


@pytest.fixture(scope="module")
def models():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [DPMeans(n_clusters=5).fit(X[:5000]), VariationalDPMixture(max_time=3).fit(X[:3000])]


class TestScores:
    @pytest.mark.parametrize("chunks", [(50_000, -1), ((1, 44_999, 0, 20_000, 45_000), (2, 1))])
    def test_of_arrays(self, chunks, client, models):
        made, weight = da.from_array(X, chunks=chunks), np.random.default_rng(0).random(N)
        assert models[0].score(made) == models[0].score(X)
        assert models[0].score(made, sample_weight=weight) == models[0].score(X, sample_weight=weight)
        assert_allclose(models[1].score(made), models[1].score(X), rtol=1e-12)

    def test_of_dataframes(self, client):
        frame = pd.DataFrame(X[:4000], columns=list("abc")).assign(w=np.arange(4000) % 3)
        made, names = dd.from_pandas(frame, npartitions=3), list("abc")
        model = DPMeans(n_clusters=3).fit(frame[names])
        whole = model.score(frame[names], sample_weight=frame["w"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert model.score(made[names], sample_weight=made["w"]) == whole
        with pytest.raises(ValueError, match="feature names"):
            model.score(made[names[::-1]])

    def test_a_model_that_is_not_fitted_says_so(self):
        for model in (DPMeans(), VariationalDPMixture()):
            with pytest.raises(ValueError, match="not fitted"):
                model.score(da.ones((5, 2)))


class TestBatches:
    def test_a_collection_is_no_batch_and_its_blocks_are(self, client):
        made = da.from_array(X[:6000], chunks=(2000, 2))
        for model in (DPMeans(radius=30.0), KernelDPMixture(random_state=0)):
            with pytest.raises(TypeError, match=r"for part in X\.blocks: model\.partial_fit\(part\.compute\(\)\)"):
                model.partial_fit(made)
            assert not hasattr(model, "labels_")
            for part in made.blocks:
                model.partial_fit(part.compute())
            assert_array_equal(model.labels_, model.predict(X[4000:6000]))

    def test_of_dataframes(self, client):
        made, model = dd.from_pandas(pd.DataFrame(X[:6000], columns=list("abc")), npartitions=3), DPMeans(radius=30.0)
        with pytest.raises(TypeError, match=r"for part in X\.partitions"):
            model.partial_fit(made)
        for part in made.partitions:
            model.partial_fit(part.compute())
        assert len(model.labels_) == 2000


class TestAnswersByBlock:
    def test_fit_transform_and_fit_predict(self, client):
        made = da.from_array(X[:4000], chunks=(1500, 2))
        whole = DPMeans(n_clusters=4).fit(X[:4000])
        assert_array_equal(DPMeans(n_clusters=4).fit_transform(made).compute(), whole.transform(X[:4000]))
        assert_array_equal(DPMeans(n_clusters=4).fit_predict(made).compute(), whole.labels_)

    def test_one_frame_of_all_rows_is_refused(self, client):
        model = DPMeans(n_clusters=3).fit(X[:500]).set_output(transform="pandas")
        with pytest.raises(ValueError, match=r"set_output\(transform='pandas'\) makes one frame of all rows"):
            model.transform(da.from_array(X[:500]))

    def test_large_blocks_of_numbers_for_each_cluster_are_told(self, models):
        with pytest.warns(UserWarning, match=r"transform gives 5 numbers for each row.*GiB.*X\.rechunk"):
            models[0].transform(da.ones((10**8, 3), chunks=(10**8, 3)))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            models[0].transform(da.ones((10**8, 3), chunks=(10**5, 3)))
            models[0].predict(da.ones((10**8, 3), chunks=(10**8, 3)))

    def test_labels_are_written_block_by_block(self, client, models, tmp_path):
        pytest.importorskip("pyarrow")
        made = da.from_array(X[:4000], chunks=((1500, 0, 2500), 2))
        path = kfree.write(models[0], made, tmp_path / "labels.csv", what=["predict", "decision_function", "transform"])
        written = pd.read_csv(path)
        assert_array_equal(written["row"], np.arange(4000))
        assert_array_equal(written["label"], models[0].predict(X[:4000]))
        assert_allclose(written["decision"], models[0].decision_function(X[:4000]))
        frame = pd.DataFrame(X[:4000], columns=list("abc"), index=np.arange(4000) * 2)
        model = VariationalDPMixture().fit(frame)
        path = kfree.write(
            model, dd.from_pandas(frame, npartitions=3), tmp_path / "shares.parquet", what="predict_proba"
        )
        written = pd.read_parquet(path).to_numpy()[:, 1:]
        assert_allclose(written, model.predict_proba(frame))


def _delayed(part):
    import dask

    return dask.delayed(part)
