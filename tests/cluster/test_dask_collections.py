"""Collections as users have them: shuffled, of many types, inside of tasks; answers that are asked for later."""

import os
import signal
import time
import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

import kfree
from kfree import DPMeans, HDPTopics, KFeatures, VariationalDPMixture

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
dask = pytest.importorskip("dask")
pytest.importorskip("distributed")

N = 104_000  # longer than what is fitted in memory
NAMES = list("abc")


def rows(n=N, p=3, K=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(0, 9, size=(K, p))[rng.integers(K, size=n)] + rng.normal(size=(n, p))


X = rows()
WEIGHT = np.where(X[:, 0] > np.median(X[:, 0]), 2.0, 0.25)
BLOCKS = da.from_array(X, chunks=(26_000, -1))


@pytest.fixture(scope="module")
def whole():
    return DPMeans(n_clusters=5).fit(X)


def shuffled():
    """A frame whose rows have another place each time they are made, where there is no cluster."""
    frame = pd.DataFrame(X, columns=NAMES).assign(w=WEIGHT, k=np.arange(N) * 7919 % 1000)
    return dd.from_pandas(frame, npartitions=4).shuffle("k")


@pytest.fixture
def alone(monkeypatch):
    """No cluster, whatever is running."""
    monkeypatch.setattr("kfree.rows.dask._client", lambda: None)
    with dask.config.set({"scheduler": "sync", "dataframe.shuffle.method": "disk"}):
        yield


class TestShuffledFrames:
    def test_on_a_cluster_they_are_the_same_rows_with_the_same_weights(self, client, whole):
        made = shuffled()
        model = DPMeans(n_clusters=5).fit(made[NAMES], sample_weight=made["w"])
        assert model.inertia_ == DPMeans(n_clusters=5).fit(X, sample_weight=WEIGHT).inertia_
        assert whole.score(made[NAMES], sample_weight=made["w"]) == whole.score(X, sample_weight=WEIGHT)

    @pytest.mark.usefixtures("alone")
    @pytest.mark.parametrize("model", [DPMeans(), KFeatures(2, n_init=1), VariationalDPMixture()])
    def test_without_one_they_are_refused_and_the_ways_out_are_named(self, model):
        # no shuffle is sure to change the order, so these blocks do
        turn = iter(range(10**6))
        made = dask.delayed(lambda part: np.roll(part, next(turn), axis=0), pure=False)
        parts = [da.from_delayed(made(X[i : i + 26_000]), (26_000, 3), float) for i in range(0, N, 26_000)]
        with pytest.raises(ValueError, match=r"Block 0 of X.*another order.*Start a Client or call X.persist"):
            model.fit(da.concatenate(parts))

    @pytest.mark.usefixtures("alone")
    def test_all_that_is_written_of_a_row_is_about_that_row(self, whole, tmp_path):
        file = kfree.write(whole, shuffled()[NAMES], tmp_path / "said.parquet", what=["predict", "transform"])
        said = pd.read_parquet(file)
        assert_array_equal(said["label"], said.filter(like="dpmeans").to_numpy().argmin(axis=1))


def test_answers_are_those_of_the_model_that_was_asked(client):
    model = DPMeans(n_clusters=5).fit(X)
    before, later, shares = model.predict(X), model.predict(BLOCKS), model.transform(BLOCKS)
    model.set_params(n_clusters=2).fit(X)
    assert_array_equal(later.compute(), before)
    assert shares.compute().shape == shares.shape == (N, 5)


def test_topics_learn_from_batches_in_memory_only(client):
    counts = da.from_array(np.ones((200, 5)), chunks=(100, -1))
    with pytest.raises(TypeError, match=r"partial_fit learns from one batch in memory.*X\.blocks"):
        HDPTopics().partial_fit(counts)


def test_entries_of_rows_have_blocks_of_known_sizes_though_those_of_the_rows_are_unknown(client):
    unknown = BLOCKS[da.ones(N, chunks=26_000, dtype=bool)]
    model = DPMeans(n_clusters=5, outliers=True).fit(unknown)
    assert model.labels_.chunks == model.probabilities_.chunks == ((26_000,) * 4,)
    here = DPMeans(n_clusters=5, outliers=True).fit(X)
    assert_array_equal(model.labels_.compute(), here.labels_)
    assert_array_equal(model.probabilities_.compute(), here.probabilities_)


@pytest.mark.parametrize(
    "change",
    [
        lambda frame: frame.convert_dtypes(dtype_backend="numpy_nullable"),
        lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
        lambda frame: frame.assign(c=frame["c"].astype(np.float32).round() > 0, b=frame["b"].round().astype(int)),
    ],
    ids=["nullable", "arrow", "mixed"],
)
def test_frames_of_any_numbers_are_tables_of_numbers(change, client):
    frame = change(pd.DataFrame(X, columns=NAMES))
    made = dd.from_pandas(frame, npartitions=3)
    model, here = DPMeans(n_clusters=4).fit(made), DPMeans(n_clusters=4).fit(frame)
    assert_array_equal(model.labels_.compute(), here.labels_)
    assert_array_equal(model.cluster_centers_, here.cluster_centers_)
    assert_array_equal(model.predict(made).compute(), here.labels_)


def test_columns_of_text_are_named_by_their_type(client):
    frame = pd.DataFrame(X, columns=NAMES).assign(d="x").astype({"d": object})
    with pytest.raises(ValueError, match=r"values of type object\. Select the columns that are numbers"):
        DPMeans().fit(dd.from_pandas(frame, npartitions=3))


def test_frames_whose_columns_have_numbers_for_names_can_be_read(whole):
    with kfree.read(dd.from_pandas(pd.DataFrame(X), npartitions=3)) as source:
        assert source.shape == X.shape
        assert_array_equal(whole.predict(source), whole.labels_)


def test_what_nobody_knows_the_shape_of_is_refused():
    with pytest.raises(TypeError, match=r"Delayed.*da\.from_delayed"):
        DPMeans().fit(dask.delayed(X))


class TestWeights:
    def spread(self, sizes, weight):
        """Rows in blocks of unknown sizes, with weights in others."""
        places = np.cumsum([0, *sizes])
        parts = [dask.delayed(weight[a:b]) for a, b in pairwise(places)]
        weights = da.concatenate([da.from_delayed(part, (np.nan,), weight.dtype) for part in parts])
        half = X.shape[0] // 2
        rows = [dask.delayed(part) for part in (X[:half], X[half:])]
        return da.concatenate([da.from_delayed(part, (np.nan, X.shape[1]), X.dtype) for part in rows]), weights

    @pytest.mark.parametrize("missing", ["all", "one"])
    def test_a_block_without_the_weights_of_its_rows_is_refused(self, missing):
        half, n = X.shape[0] // 2, X.shape[0]
        sizes = (0, n - half) if missing == "all" else (half - 1, n - half)
        rows, weight = self.spread(sizes, np.ones(n))
        with pytest.raises(ValueError, match=f"Block 0 of X.*sample_weight has {sizes[0]} entries where X has {half}"):
            DPMeans(n_clusters=2).fit(rows, sample_weight=weight)

    @pytest.mark.parametrize(
        ("weight", "words"),
        [
            (np.full(X.shape[0], 1 + 5j), "must hold real numbers, got complex ones"),
            (np.full(X.shape[0], "x", object), "must hold numbers.*could not convert string to float: 'x'"),
            (np.array([1.0, pd.NA] * (X.shape[0] // 2), object), "must hold numbers, none of them missing"),
        ],
    )
    def test_what_is_no_weight_is_refused(self, weight, words):
        rows, weights = self.spread((X.shape[0] // 2, X.shape[0] - X.shape[0] // 2), weight)
        with pytest.raises(ValueError, match=f"Block 0 of X.*sample_weight {words}"):
            DPMeans(n_clusters=2).fit(rows, sample_weight=weights)

    def test_sizes_of_either_may_be_unknown(self):
        weight = 1.0 + np.arange(X.shape[0]) % 3
        there = DPMeans(n_clusters=3).fit(X, sample_weight=weight)
        frame = dd.from_pandas(pd.DataFrame(X, columns=NAMES).assign(w=weight), npartitions=3)
        sized = frame[NAMES].to_dask_array(lengths=True)
        for rows, weights in ((sized, frame["w"]), (frame[NAMES], frame["w"].to_dask_array(lengths=True))):
            assert DPMeans(n_clusters=3).fit(rows, sample_weight=weights).inertia_ == there.inertia_

    def test_weights_elsewhere_are_not_pulled(self):
        with pytest.raises(TypeError, match=r"and X is in memory\. Pass sample_weight\.compute\(\)"):
            DPMeans().fit(X, sample_weight=da.ones(X.shape[0]))
        with pytest.raises(ValueError, match=r"X\.to_dask_array\(lengths=True\) of a dataframe"):
            DPMeans().fit(dd.from_pandas(pd.DataFrame(X), npartitions=2), sample_weight=np.ones(X.shape[0]))


def test_what_is_no_table_is_refused(whole):
    frame = dd.from_pandas(pd.DataFrame(X, columns=NAMES), npartitions=2)
    for column in (frame[NAMES[0]], frame.index):
        with pytest.raises(ValueError, match=r"one axis.*X\.to_frame"):
            DPMeans().fit(column)
    for model in (DPMeans(), KFeatures(), VariationalDPMixture()):
        with pytest.raises(ValueError, match="X has 0 columns"):
            model.fit(da.zeros((10, 0)))


def test_questions_about_rows_name_the_block(whole, tmp_path):
    bad = X.copy()
    bad[-1, 0] = np.nan
    rows = da.from_array(bad, chunks=(-(-len(X) // 2), -1))
    with pytest.raises(ValueError, match=r"A block of X \(its rows are numbered from 0\): Input X contains NaN"):
        whole.predict(rows).compute()
    with pytest.raises(ValueError, match=r"Block 1 of X \(its rows are numbered from 0\): Input X contains NaN"):
        kfree.write(whole, rows, tmp_path / "labels.csv")
    assert not list(tmp_path.iterdir())


def test_sparse_documents_are_not_sent_to_a_reader_of_dense_ones(client):
    counts = sp.random(104_000, 40, density=0.2, format="csr", random_state=0)
    counts.data[:] = 1 + np.arange(counts.nnz) % 3
    counts = sp.csr_matrix(counts + sp.csr_matrix(np.eye(40)[np.arange(104_000) % 40]))
    parts = [dask.delayed(counts[i : i + 20_000], traverse=False) for i in range(0, 104_000, 20_000)]
    sizes = [min(20_000, 104_000 - i) for i in range(0, 104_000, 20_000)]
    spread = da.concatenate([da.from_delayed(part, (size, 40), meta=counts[:0]) for part, size in zip(parts, sizes)])
    with pytest.raises(ValueError, match=r"search='paper'.*X\.compute"):
        HDPTopics(search="paper", mix=0.0).fit(spread)


def fit_in_a_task(chunks):
    return DPMeans(n_clusters=5).fit(da.from_array(rows(), chunks=chunks)).inertia_


def test_a_fit_inside_of_a_task_lets_other_tasks_run(whole):
    from distributed import Client

    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as threads:
        inertia = threads.submit(fit_in_a_task, (26_000, -1)).result(timeout=60)
    assert inertia == whole.inertia_


def test_workers_that_say_nothing_are_not_waited_for(monkeypatch):
    from distributed import Client, LocalCluster

    from kfree.rows.dask import WorkersLost

    monkeypatch.setattr("kfree.rows.dask._SILENCE", 2.0)
    monkeypatch.setattr("kfree.rows.dask._PATIENCE", 2.0)
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster,
        Client(cluster) as client,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        pids = list(client.run(os.getpid).values())

        def slow(part):
            time.sleep(0.5)
            return part

        made = BLOCKS.map_blocks(slow, dtype=float)
        client.persist(made)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(WorkersLost, match="does not answer after 3 attempts"):
                DPMeans(n_clusters=5).fit(made)
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
