"""Files that are not as save wrote them: a ValueError that says what and where, and nothing is run."""

import io
import json
import pickle
import re
import warnings
import zipfile

import numpy as np
import pytest

import kfree
from kfree.estimators._saving import Saveable
from kfree.models.stored_files import FORMAT
from support.saved_models import CLOUDS, COUNTS, differences
from support.sealed_files import SUMS, TEXT, disturbed, disturbed_array, edited, entries_of, npy, pack, places, seal

FEW = CLOUDS[::5]
MODELS = {
    "clusters": lambda: kfree.DPMeans(n_clusters=2, divergence="poisson", smoothing=0.1).fit(COUNTS[::5]),
    "shared": lambda: kfree.HDPMeans(2.0, 20.0).fit(FEW, groups=["a", "b", 3] * 3),
    "topics": lambda: kfree.HDPTopics(n_topics=2).fit(COUNTS),
    "sampled": lambda: kfree.GibbsDPMixture(n_samples=2, burn_in=1, n_chains=1, warm_start=True).fit(FEW),
    "features": lambda: kfree.GibbsIBP(n_samples=2, burn_in=1, n_chains=1).fit(FEW),
    "stream": lambda: kfree.KernelDPMixture(features=8).partial_fit(FEW),
}


@pytest.fixture(scope="module")
def models():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: make() for name, make in MODELS.items()}


@pytest.fixture
def saved(models, tmp_path):
    """Where a model of clusters was saved, and what is in the file."""
    path = tmp_path / "model.kfree"
    models["clusters"].save(path)
    return path, entries_of(path)


def refused(path, message):
    with pytest.raises(ValueError, match=message) as caught:
        kfree.load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "data", [b"", b"hello", b"PK\x05\x06" + bytes(18), pickle.dumps(FEW), b"PK\x03\x04" * 50], ids=range(5)
)
def test_a_file_that_is_none_is_refused(data, tmp_path):
    path = tmp_path / "some"
    path.write_bytes(data)
    refused(path, r"no zip file|no entry model\.json")
    refused(path, r"joblib\.load")


def test_a_file_that_was_cut_off_is_refused_wherever_it_was_cut(saved):
    path, _ = saved
    data = path.read_bytes()
    for length in np.linspace(0, len(data) - 1, 60).astype(int):
        path.write_bytes(data[:length])
        refused(path, "not a whole one")


def test_a_newer_format_names_both_versions(saved):
    path, entries = saved

    def newer(header):
        return {**header, "format": FORMAT + 1, "kfree": "9.9.1", "anything": "new"}

    seal(path, {**edited(entries, newer), "a/b": b""})
    version = re.escape(kfree.__version__)
    refused(path, rf"format {FORMAT + 1}, written by kfree 9\.9\.1; this is kfree {version}.*up to {FORMAT}.*Upgrade")


def test_files_that_would_unpack_to_more_than_they_are_long_are_refused(saved):
    path, entries = saved
    bomb = npy(np.zeros(10**6))
    seal(path, {**entries, "labels_.npy": bomb}, zipfile.ZIP_DEFLATED)
    refused(path, "compressed or encrypted")
    pack(path, entries)
    data = bytearray(path.read_bytes())
    for mark, at in ((b"PK\x03\x04", 18), (b"PK\x01\x02", 20)):  # both lengths of the first entry, in both headers
        start = data.index(mark) + at
        data[start : start + 8] = (0x7FFFFFFF).to_bytes(4, "little") * 2
    path.write_bytes(data)
    refused(path, "longer than the whole file")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: {**e, "../outside.npy": e["labels_.npy"]}, "a name that kfree does not give"),
        (lambda e: {**e, "a\\b.npy": e["labels_.npy"]}, "a name that kfree does not give"),
        (lambda e: {**e, "run.py": b"print()"}, r"run\.py is of an unknown kind"),
        (lambda e: {**e, "more.npy": e["labels_.npy"]}, r"more\.npy belongs to no part"),
        (lambda e: {n: d for n, d in e.items() if n != "labels_.npy"}, r"labels_.* not there"),
        (lambda e: {n: d for n, d in e.items() if n != TEXT}, r"no entry model\.json"),
        (lambda e: {**e, TEXT: b"{"}, r"model\.json cannot be read"),
        (lambda e: {**e, TEXT: b"\xff"}, r"model\.json cannot be read"),
        (lambda e: {**e, TEXT: b"[" * 10**5}, r"model\.json cannot be read"),
        (lambda e: {**e, TEXT: b"[" * 500 + b"]" * 500}, "which format"),
        (lambda e: {**e, TEXT: b'{"format": NaN}'}, "no number of JSON"),
        (lambda e: {**e, TEXT: b'{"format": true}'}, "which format"),
        (lambda e: {**e, TEXT: b'{"format": 1}'}, "four parts"),
        (lambda e: {**e, "labels_.npy": npy(np.zeros(3, np.int32))}, r"should have shape \[9\].*has \[3\]"),
        (lambda e: {**e, "labels_.npy": npy(np.zeros(9))}, r"type int32.*float64"),
        (lambda e: {**e, "labels_.npy": npy(np.array([print]), allow_pickle=True)}, "no array of numbers"),
        (lambda e: {**e, "labels_.npy": npy(np.zeros(3, "f8,i4"))}, "no array of numbers"),
        (lambda e: {**e, "labels_.npy": e["labels_.npy"][:-4]}, "bytes, which shape"),
        (lambda e: {**e, "labels_.npy": b"\x93NUMPY\x01\x00"}, "no array of numbers"),
    ],
    ids=range(19),
)
def test_entries_that_do_not_belong_there_are_refused(saved, change, message):
    path, entries = saved
    seal(path, change(entries))
    refused(path, message)


def test_entries_that_checksums_do_not_know_or_know_otherwise_are_refused(saved):
    path, entries = saved
    seal(path, entries)
    whole = every_entry(path)
    pack(path, {**whole, "more.npy": entries["labels_.npy"]})
    refused(path, rf"more\.npy is in only one of zip file and {SUMS}")
    pack(path, {**whole, "labels_.npy": npy(np.ones(9, np.int32))})
    refused(path, r"labels_\.npy is not as it was saved")
    pack(path, edited(whole, lambda header: header["model"]["fitted"].update(n_clusters_=1)))
    refused(path, r"model\.json is not as it was saved")
    pack(path, {**whole, SUMS: b"\xff"})
    refused(path, "SHA256SUMS cannot be read")
    pack(path, whole)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("labels_.npy", entries["labels_.npy"])
    refused(path, "two entries of one name")


def at(*keys):
    """A part of the JSON's model."""

    def find(header):
        node = header["model"]
        for key in keys:
            node = node[key]
        return node

    return find


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        ((), {"type": "system"}, "'system', which this kfree does not know"),
        ((), {"type": "HardClusters"}, "does not know"),
        ((), {"type": ["DPMeans"]}, "lacks 'type'"),
        ((), {"kind": "tuple", "items": []}, "no estimator in it"),
        ((), {"kind": "__import__"}, "unknown kind"),
        (("parameters",), {"command": "rm"}, "no parameter 'command'"),
        (("fitted",), {"predict": 1}, "no attribute of a fitted"),
        (("fitted",), {"__class__": 1}, "no attribute of a fitted"),
        (("fitted",), {"_problem": 1}, "no attribute of a fitted"),
        (("fitted",), {"lam": 1}, "no attribute of a fitted"),
        (("fitted",), {"x y_": 1}, "no attribute of a fitted"),
        (("fitted",), {"_model": 1}, r"DPMeans\._model is a int, which it cannot be"),
        (("fitted",), {"n_features_in_": 7}, r"anchor has shape \(3,\), but \(D\) is needed: D = 7"),
        (("fitted", "_model"), {"type": "open"}, "'open', which this kfree does not know"),
        (("fitted", "_model", "parts"), {"more": 1}, "has or lacks 'more'"),
        (("fitted", "_model", "parts"), {"mass": "x"}, r"_model\.mass is a str"),
        (("fitted", "_model", "parts"), {"unit": True}, r"_model\.unit is a bool"),
        (("fitted", "_model", "parts", "geometry", "parts"), {"family": {}}, "family is of an unknown kind"),
        (("fitted", "family_"), {"type": "Binomial", "parts": {"n": -1.0}}, "needs a positive number n"),
        (("fitted", "cluster_centers_"), {"file": "../../x"}, "is not there"),
    ],
)
def test_what_the_json_asks_for_must_be_on_the_list(saved, where, value, message):
    path, entries = saved
    seal(path, edited(entries, lambda header: at(*where)(header).update(value)))
    refused(path, message)


@pytest.mark.parametrize(
    ("model", "name", "change"),
    [
        ("shared", "_shared.held.member", lambda a: a + 99),
        ("shared", "_shared.held.member", lambda a: a - 99),
        ("shared", "_shared.held.start", lambda a: a[::-1].copy()),
        ("sampled", "_last.0.0.state.labels", lambda a: a - 99),
        ("sampled", "_last.0.0.kept.0.labels", lambda a: a + 99),
    ],
)
def test_positions_that_compiled_loops_would_follow_are_checked(models, model, name, change, tmp_path):
    path = tmp_path / "model"
    models[model].save(path)
    entries = entries_of(path)
    array = np.load(io.BytesIO(entries[f"{name}.npy"]))
    seal(path, {**entries, f"{name}.npy": npy(change(array).astype(array.dtype))})
    refused(path, "numbers that are not from 0 to|does not part")


class Flag:
    """Raised from the dead by pickle, it leaves a trace."""

    seen = False

    def __reduce__(self):
        return setattr, (Flag, "seen", True)


def test_nothing_that_was_pickled_into_a_file_is_run(saved):
    path, entries = saved
    harm = pickle.dumps(Flag())
    evil = npy(np.array([Flag()], object), allow_pickle=True)
    for name in entries:
        for data in (harm, evil):
            seal(path, {**entries, name: data})
            refused(path, "cannot be loaded")
    assert not Flag.seen
    pickle.loads(harm)
    assert Flag.seen


def tampered(path, entries, rng):
    """A file of which bytes are flipped, entries swapped or the JSON edited, but not its checksums."""
    names = [name for name in entries if name != SUMS]
    what = rng.integers(4)
    if what == 0:
        pack(path, entries)
        data = bytearray(path.read_bytes())
        for place in rng.integers(len(data), size=rng.integers(1, 4)):
            data[place] ^= 1 << rng.integers(8)
        path.write_bytes(data)
    elif what == 1:
        a, b = rng.choice(names, 2)
        pack(path, {**entries, a: entries[b], b: entries[a]})
    elif what == 2:
        pack(path, edited(entries, lambda header: disturbed(header, rng)))
    else:
        name = rng.choice([name for name in names if name != TEXT])
        pack(path, {**entries, name: disturbed_array(entries[name], rng)})


def every_entry(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_two_thousand_files_that_were_tampered_with_are_equal_models_or_refused(models, tmp_path):
    path, rng, equal = tmp_path / "model", np.random.default_rng(0), 0
    for model in models.values():
        model.save(path)
        entries = every_entry(path)
        for _ in range(2000 // len(models) + 1):
            tampered(path, entries, rng)
            try:
                loaded = kfree.load(path)
            except ValueError:
                continue
            assert differences(model, loaded) == []
            equal += 1
    assert equal < 1000  # some bytes of a zip file mean nothing, and some edits change nothing


def test_five_hundred_files_that_were_sealed_again_are_models_or_refused(models, tmp_path):
    path, rng = tmp_path / "model", np.random.default_rng(1)
    for model in models.values():
        model.save(path)
        entries = entries_of(path)
        header, arrays = json.loads(entries[TEXT]), sorted(set(entries) - {TEXT})
        assert places(header)
        for _ in range(500 // len(models) + 1):
            name = rng.choice(arrays)
            changed = {TEXT: json.dumps(disturbed(header, rng)).encode()}
            if rng.random() < 0.3:
                changed = {name: disturbed_array(entries[name], rng)}
            seal(path, {**entries, **changed})
            try:
                loaded = kfree.load(path)
            except ValueError:
                continue
            assert isinstance(loaded, Saveable)
