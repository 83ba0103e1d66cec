"""save and load: every model comes back as it was, bit for bit, also in another process, and goes on from there."""

import json
import os
import pickle
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

import kfree
from kfree.models.stored_types import KINDS
from kfree.models.stored_values import Reader, Writer
from support.saved_models import CLOUDS, COUNTS, SAVED, answers, differences

ESTIMATORS = [
    kind
    for kind in (getattr(kfree, name) for name in kfree.__all__)
    if isinstance(kind, type) and issubclass(kind, BaseEstimator)
]
TESTS = Path(__file__).parent.parent


@cache
def fitted(name):
    return SAVED[name].fitted()


@cache
def said(name):
    return answers(fitted(name), SAVED[name])


def there_and_back(model, tmp_path, name="model.kfree"):
    model.save(tmp_path / name)
    return kfree.load(tmp_path / name)


@pytest.mark.parametrize("name", SAVED)
def test_a_loaded_model_is_the_one_that_was_saved(name, tmp_path):
    model = fitted(name)
    loaded = there_and_back(model, tmp_path)
    assert differences(model, loaded) == []
    assert differences(said(name), answers(loaded, SAVED[name])) == []


def test_every_estimator_and_every_type_on_the_list_is_saved_above(tmp_path):
    assert {type(case.model) for case in SAVED.values()} == set(ESTIMATORS)
    used = set()
    for name in SAVED:
        writer = Writer({type(SAVED[name].model).__name__: type(SAVED[name].model)})
        text = json.dumps(writer.write(fitted(name), "model"))
        used |= {kind for kind in KINDS if f'"type": "{kind}"' in text}
    assert set(KINDS) - used == set()


def digests(folder):
    """What the models of a folder answer, hashed."""
    return {name: joblib.hash(answers(kfree.load(folder / name), case)) for name, case in SAVED.items()}


def test_another_process_gets_the_same_answers(tmp_path):
    for name in SAVED:
        fitted(name).save(tmp_path / name)
    code = (
        "import json, sys, warnings; from pathlib import Path\n"
        "warnings.simplefilter('ignore')\n"
        "from estimators.test_saving import digests\n"
        "print(json.dumps(digests(Path(sys.argv[1]))))"
    )
    source = Path(kfree.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (source, TESTS)))}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {name: joblib.hash(said(name)) for name in SAVED}


@pytest.mark.parametrize(
    "name", ["stream", "auto", "clusters kl", "topics", "kernel batch", "kernel multinomial batch"]
)
def test_a_loaded_model_learns_from_more_batches_as_the_first_would(name, tmp_path):
    model = SAVED[name].fitted()
    loaded, more = there_and_back(model, tmp_path), SAVED[name].X[::-1][:20]
    assert differences(model.partial_fit(more), loaded.partial_fit(more)) == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", ["clusters sqeuclidean", "shared sqeuclidean", "sampled gaussian", "sampled poisson", "sampled features"]
)
def test_a_loaded_model_goes_on_with_warm_start(name, tmp_path):
    model = SAVED[name].fitted().set_params(warm_start=True)
    loaded = there_and_back(model, tmp_path)
    groups = {} if SAVED[name].groups is None else {"groups": SAVED[name].groups}
    again, also = (one.fit(SAVED[name].X, **groups) for one in (model, loaded))
    assert differences(again, also) == []


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_models_that_are_not_fitted_keep_their_parameters(kind, tmp_path):
    some = {"max_time": 2.5} if "max_time" in kind().get_params() else {"kinds": {"day": "date"}}
    loaded = there_and_back(kind().set_params(**some), tmp_path)
    assert type(loaded) is kind
    assert loaded.get_params() == kind().set_params(**some).get_params()
    with pytest.raises(NotFittedError):
        loaded.predict(CLOUDS) if hasattr(loaded, "predict") else loaded.transform(CLOUDS)


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_column_names_and_output_settings_stay(package, tmp_path):
    frames = pytest.importorskip(package)
    frame = frames.DataFrame({"größe": CLOUDS[:, 0], "": CLOUDS[:, 1], "a/b": CLOUDS[:, 2]})
    model = kfree.DPMeans(n_clusters=3).fit(frame).set_output(transform=package)
    loaded = there_and_back(model, tmp_path)
    assert differences(model, loaded) == []
    assert type(loaded.transform(frame)) is frames.DataFrame
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame[["a/b", "", "größe"]])


class Silent:
    """A callback that listens to nothing."""

    def setup(self, estimator, context):
        pass

    teardown = on_fit_task_begin = setup

    def on_fit_task_end(self, estimator, context, *, metadata=None):
        return False


def test_callbacks_are_not_saved(tmp_path):
    pytest.importorskip("sklearn.callback")
    model = kfree.DPMeans(n_clusters=2).set_callbacks(Silent()).fit(CLOUDS)
    loaded = there_and_back(model, tmp_path)
    assert differences(model.set_callbacks(), loaded) == []


def test_a_model_that_refers_to_another_model_keeps_it(tmp_path):
    earlier = kfree.DPMeans(n_clusters=2).fit(CLOUDS[:, :2])
    loaded = there_and_back(kfree.DPMeans(init=earlier), tmp_path)
    assert differences(earlier, loaded.init) == []


def test_arrays_are_kept_once_under_names_that_numpy_reads(tmp_path):
    model = kfree.DPMeans(n_clusters=3).fit(CLOUDS)
    loaded = there_and_back(model, tmp_path)
    assert loaded.cluster_centers_ is loaded._model.centres
    with np.load(tmp_path / "model.kfree", allow_pickle=False) as arrays:
        assert np.array_equal(arrays["cluster_centers_"], model.cluster_centers_)
    in_columns = kfree.DPMeans(init=np.asfortranarray(CLOUDS[:4]))
    assert there_and_back(in_columns, tmp_path).init.flags.f_contiguous


def test_equal_models_are_equal_files_and_old_files_are_overwritten(tmp_path):
    path = tmp_path / "model"
    kfree.DPMeans(n_clusters=2).fit(CLOUDS).save(str(path))
    first = path.read_bytes()
    kfree.DPMeans(n_clusters=3).fit(CLOUDS).save(path)
    assert path.read_bytes() != first
    kfree.load(str(path)).set_params(n_clusters=2).fit(CLOUDS).save(os.fspath(path))
    assert path.read_bytes() == first
    assert os.listdir(tmp_path) == ["model"]


def test_links_are_followed(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "model")
    kfree.DPMeans().save(link)
    assert link.is_symlink()
    assert (tmp_path / "model").is_file()


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "ctrl-c"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(error, tmp_path, monkeypatch):
    path = tmp_path / "model"
    kfree.DPMeans().save(path)
    before, calls = path.read_bytes(), []
    write = zipfile.ZipFile.writestr

    def fail(*arguments):
        calls.append(arguments)
        if len(calls) > 2:
            raise error
        return write(*arguments)

    monkeypatch.setattr(zipfile.ZipFile, "writestr", fail)
    with pytest.raises(type(error)):
        fitted("auto").save(path)
    assert len(calls) == 3
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


class OwnFamily(kfree.Poisson):
    name = "poisson"


class OwnClusters(kfree.DPMeans):
    pass


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (kfree.DPMeans(divergence=OwnFamily()), r"DPMeans\.divergence is a .*OwnFamily.*joblib\.dump"),
        (OwnClusters(), r"OwnClusters is not one of them.*joblib\.dump"),
        (kfree.DPMeans(random_state=np.random.RandomState(0)), r"RandomState.*set_params\(random_state=0\)"),
        (kfree.DPMeans(init=np.zeros(2, complex)), r"DPMeans\.init is a numpy\.ndarray of complex128"),
        (kfree.KernelDPMixture(candidates={"means": print}), r"candidates\.means is a builtins\.builtin_function"),
        (kfree.DPMeans(init=np.array([[1, print]], object)), r"DPMeans\.init\.1 is a"),
    ],
)
def test_what_cannot_be_saved_is_named_and_no_file_is_made(model, message, tmp_path):
    with pytest.raises(TypeError, match=message):
        model.save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_places_that_are_none_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no folder .*missing"):
        kfree.DPMeans().save(tmp_path / "missing" / "model")
    with pytest.raises(ValueError, match="folder or a device"):
        kfree.DPMeans().save(tmp_path)
    with pytest.raises(ValueError, match="folder or a device"):
        kfree.DPMeans().save(os.devnull)
    with pytest.raises(TypeError):
        kfree.DPMeans().save(3)
    with pytest.raises(FileNotFoundError):
        kfree.load(tmp_path / "missing")


_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**130), 2**130)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from([np.float32(0.1), np.int8(-3), np.bool_(True), np.str_("x"), np.datetime64("2020-01-01", "s")])
    | st.sampled_from([np.float64("nan"), np.uint64(2**64 - 1), np.timedelta64("NaT", "ns"), np.float16(2)])
    | hnp.arrays(
        st.sampled_from(["f8", "f4", "i4", "u1", "b1", "U3", "M8[s]", ">f8"]), hnp.array_shapes(min_dims=0, min_side=0)
    )
)
_VALUES = st.recursive(
    _LEAVES,
    lambda some: (
        st.lists(some, max_size=3)
        | st.tuples(some, some)
        | st.dictionaries(st.text(max_size=4), some, max_size=3)
        | st.dictionaries(st.integers() | st.tuples(st.integers(), st.text(max_size=2)), some, max_size=3)
    ),
    max_leaves=8,
)


@given(value=_VALUES)
def test_every_value_comes_back(value):
    writer = Writer({})
    text = json.dumps(writer.write(value, "value"), allow_nan=False)
    assert differences(value, Reader({}, writer.arrays).read(json.loads(text), "value")) == []


@pytest.mark.parametrize(
    "name", ["auto", "own settings", "topics", "features", "tree", "kernel batch", "sampled features"]
)
def test_pickle_and_joblib_keep_models_too(name, tmp_path):
    model = fitted(name)
    joblib.dump(model, tmp_path / "model")
    for again in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model")):
        assert differences(said(name), answers(again, SAVED[name])) == []


@pytest.mark.parametrize("name", [name for name in SAVED if name not in ("groups of several kinds", "groups of days")])
def test_skops_keeps_models_of_the_modules_that_the_docs_list(name):
    skops = pytest.importorskip("skops.io")
    page = (TESTS.parent / "docs" / "theory" / "inside.md").read_text()
    data = skops.dumps(fitted(name))
    wanted = skops.get_untrusted_types(data=data)
    modules = {kind.rpartition(".")[0] for kind in wanted if not kind.startswith("scipy.sparse.")}
    assert [module for module in modules if f"`{module}`" not in page] == []
    loaded = skops.loads(data, trusted=wanted)
    assert differences(said(name), answers(loaded, SAVED[name])) == []


def test_rows_that_were_not_in_the_fit_get_the_same_clusters(tmp_path):
    model = kfree.DPMeans(n_clusters=3, divergence="poisson", smoothing=0.1).fit(COUNTS)
    loaded = there_and_back(model, tmp_path)
    assert np.array_equal(loaded.predict(COUNTS + 1), model.predict(COUNTS + 1))
    assert loaded.explain() == model.explain()
