"""Which records and families a saved model may hold: a fixed list, with the types of their parts and shapes of arrays.

Whoever adds a record to a fitted estimator names it here; saving says so otherwise.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter, signature
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np

from kfree.families import FAMILIES, Array, Geometry, Mahalanobis
from kfree.families.components import Linear, Weighted, Whitened
from kfree.families.conjugate import ANCHORED, SAMPLED
from kfree.families.conjugate.diagonal import NormalGamma
from kfree.families.conjugate.discrete import Betas, Dirichlet, Gammas
from kfree.families.conjugate.full import NormalWishart
from kfree.families.conjugate.known import Normal, Rates
from kfree.families.points import POINTS, Kernel
from kfree.families.points.discrete_points import Chances
from kfree.families.points.gaussian_points import Gaussians
from kfree.inference.clusters.how_many.choose import Choice
from kfree.inference.embedding.kernel_means import FeatureSums
from kfree.inference.features.restarts import Restart
from kfree.inference.gibbs.bound_family import BoundFamily
from kfree.inference.gibbs.chains import Chain, Length
from kfree.inference.gibbs.diagnostics import Diagnostic
from kfree.inference.gibbs.dp_mixture import DPState, Kept
from kfree.inference.gibbs.ibp import IBPLevel, IBPPrior, IBPState, KeptFeatures, Rate, Spread
from kfree.inference.shared.groups import Held, Lams
from kfree.inference.topics.randomness_test import Structure
from kfree.inference.variational.posterior import Mixture, Setting
from kfree.models.clusters import Model
from kfree.models.features import FeatureModel, FeaturePath, WeightedRows
from kfree.models.gibbs_mixture import AskedSample, GibbsModel, GibbsProblem
from kfree.models.group_names import GroupIndex
from kfree.models.ibp_model import FeatureSamples, SampledFeatures
from kfree.models.ibp_problem import IBPProblem
from kfree.models.kernel_mixture import KernelModel
from kfree.models.kernel_problem import Frame
from kfree.models.kernel_stream import Stream
from kfree.models.mixture import Posterior
from kfree.models.mixture_model import MixtureModel
from kfree.models.shared import SharedModel
from kfree.models.table_columns import CategoryColumn, DateColumn, LeftOut, NumberColumn
from kfree.models.tables import PreparedTable
from kfree.models.topic_words import Company
from kfree.models.topics import LocalPrice, Penalties, TopicModel
from kfree.rows.standardise import Units
from kfree.structures.dp import StickBreaking

#: Shapes of fitted attributes, wherever they occur; D is the number of columns of X in the whole model, other letters
#: hold for one estimator or record, and * is any number.
FITTED_SHAPES = {
    "feature_names_in_": "D",
    "cluster_centers_": "K D",
    "cluster_weights_": "K",
    "components_": "K D",
    "intercept_": "D",
    "means_": "K D",
    "weights_": "K",
    "labels_": "n",
    "Z_": "n K",
    "topic_word_counts_": "K D",
    "topic_names_": "K",
    "topic_sizes_": "K",
    "documents_per_topic_": "K",
    "doc_topic_": "n K",
    "doc_labels_": "n",
    "vocabulary_": "D",
    "samples_": "s n",
    "sample_chain_": "s",
}


class Kind(NamedTuple):
    """A type that files may hold."""

    of: type
    types: dict[str, Any]  # of its parts
    shapes: dict[str, str]  # of those parts that are arrays
    optional: frozenset[str]  # parts that files of earlier versions need not have
    make: Callable[..., Any]


def _record(of: type, **shapes: str) -> Kind:
    """A record: its parts are its fields."""
    hints = get_type_hints(of)
    if is_dataclass(of):
        names = [field.name for field in fields(of)]
        optional = {field.name for field in fields(of) if field.default is not MISSING}
    else:
        names, optional = list(of._fields), set(of._field_defaults)  # type: ignore[attr-defined]
    return Kind(of, {name: hints[name] for name in names}, shapes, frozenset(optional), of)


def _built(of: type) -> Kind:
    """Something made of settings that it keeps under their names, such as a family."""
    hints, given = get_type_hints(of.__init__), signature(of).parameters  # type: ignore[misc]
    optional = {name for name, setting in given.items() if setting.default is not Parameter.empty}
    return Kind(of, {name: hints.get(name, Any) for name in given}, {}, frozenset(optional), of)


def _bare(of: type, **types: Any) -> Kind:
    """Something whose attributes are all there is to it."""

    def make(**parts: Any) -> Any:
        made: Any = object.__new__(of)
        vars(made).update(parts)
        return made

    return Kind(of, types, {}, frozenset(), make)


_PLAIN_FAMILIES = (
    *FAMILIES.values(),
    *SAMPLED.values(),
    *(shape for shapes in POINTS.values() for shape in shapes.values()),
)
_KINDS = (
    *map(_built, _PLAIN_FAMILIES),
    _built(Mahalanobis)._replace(types={"covariance": Array | list | None}),  # users may give a list
    _bare(ANCHORED["poisson"], rates=Array),
    _bare(ANCHORED["multinomial"], shares=Array),
    # clusters
    _record(Geometry, anchor="D", prior_mean="D"),
    _record(Model, shift="D", centres="K D", total="K D", mass="K"),
    _record(
        Choice,
        n_clusters="m",
        score="m",
        score_without_groups="m",
        spread_without_groups="m",
        gain="m",
        inertia="m",
        window="m 2",
    ),
    _record(SharedModel),
    _record(GroupIndex, labels="J")._replace(types={"labels": np.ndarray, "number": dict[Any, int]}),  # names: any type
    _record(Held, start="*", member="T"),
    _record(Lams),
    # topics
    _record(TopicModel, mean="D K"),
    _record(Company, words="m"),
    _record(Penalties),
    _record(LocalPrice),
    _record(Structure),
    # features
    _record(FeatureModel, components="K D", intercept="D", Z="n K"),
    _record(WeightedRows, active="n", weight="*"),
    _record(FeaturePath, n_components="m", inertia="m", objective="m", window="m 2"),
    _record(Restart),
    # mixtures
    _record(Units, shift="D", scale="D"),
    _record(MixtureModel, log_weight="K", weights="K", grain="D"),
    _record(Posterior),
    _record(Setting, grain="D", deviation="D"),
    _record(Mixture, sticks="T 2"),
    _record(StickBreaking),
    _record(NormalWishart, mean="K D", beta="K", nu="K", scale="K D D", root="K D D", log_det="K"),
    _record(NormalGamma, mean="K D", beta="K", shape="K", rate="K *"),
    _record(Normal, mean="K D", beta="K", root="K D D", log_det="K"),
    _record(Dirichlet, counts="K D"),
    _record(Gammas, shape="K D", rate="K"),
    _record(Betas, ones="K D", zeros="K D"),
    _record(Rates, rate="K D", rows="K"),
    _record(Linear, coef="K D", offset="K"),
    _record(Weighted, precision="K D", mean="K D", offset="K"),
    _record(Whitened, root="K D D", mean="K D", offset="K"),
    # kernel means
    _record(KernelModel),
    _record(Frame, floor="*"),
    _record(Kernel, widths="B"),
    _record(Stream, arrival="n"),
    _record(FeatureSums, total="f F", mass="f"),
    _record(Gaussians, mean="K D"),
    _record(Chances, chance="K D"),
    # tables
    _record(PreparedTable),
    _record(NumberColumn),
    _record(DateColumn),
    _record(CategoryColumn, share="L"),
    _record(LeftOut),
    # samples
    _record(GibbsModel),
    _record(AskedSample, shared="K T"),
    _record(GibbsProblem, weight="n", active="n"),
    _built(BoundFamily),
    _bare(Chain, rng=np.random.Generator, state=Any, swept=int, traces=list[tuple[float, ...]], kept=list),
    _record(Length),
    _record(DPState, labels="n"),
    _record(Kept, labels="n"),
    _record(Diagnostic),
    _record(SampledFeatures, Z="n K", A="K D", M="K K"),
    _bare(FeatureSamples, _kept=list[KeptFeatures], _unit=float),
    _record(KeptFeatures, bits="*"),
    _record(IBPState, Z="n K", S="K K", T="K p", M="K K", A="K p", G="K K"),
    _record(IBPLevel),
    _record(IBPProblem, X="n p", full="n D"),
    _record(IBPPrior),
    _record(Rate),
    _record(Spread),
)

#: All of them, by the names that files give them.
KINDS: dict[str, Kind] = {kind.of.__name__: kind for kind in _KINDS}
#: The same by type.
KIND_OF: dict[type, Kind] = {kind.of: kind for kind in _KINDS}


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of an annotated type; protocols and Any fit everything, and numpy's numbers are numbers."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint is Any or getattr(hint, "_is_protocol", False):
        return True
    if origin in (Union, UnionType):
        return any(fits(value, part) for part in parts)
    if hint in _NUMBERS:
        return isinstance(value, _NUMBERS[hint]) and (hint is bool or not isinstance(value, bool))
    if origin is tuple and parts[1:] != (...,):
        return isinstance(value, tuple) and len(value) == len(parts) and all(map(fits, value, parts))
    if origin in (list, tuple):
        return isinstance(value, origin) and all(fits(one, parts[0]) for one in value)
    if origin is np.ndarray:
        return isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
    if origin is dict:
        return isinstance(value, dict) and all(fits(k, parts[0]) and fits(v, parts[1]) for k, v in value.items())
    return isinstance(value, NoneType if hint is None else origin or hint)


_NUMBERS: dict[Any, Any] = {
    bool: (bool, np.bool_),
    int: (int, np.integer),
    float: (int, float, np.integer, np.floating),
}


def check_types(types: Mapping[str, Any], parts: Mapping[str, Any], where: str) -> None:
    """Whether parts are of their types, arrays of numbers."""
    for name, value in parts.items():
        if name in types and not fits(value, types[name]):
            raise ValueError(f"{where}.{name} is a {type(value).__name__}, which it cannot be")


def check_shapes(shapes: Mapping[str, str], parts: Mapping[str, Any], columns: int | None, where: str) -> None:
    """Whether arrays have the shapes that they should have together."""
    known = {} if columns is None else {"D": columns}
    for name, letters in shapes.items():
        array = parts.get(name)
        if not isinstance(array, np.ndarray):
            continue
        wanted = letters.split()
        if len(wanted) != array.ndim or not all(_agrees(*pair, known) for pair in zip(wanted, array.shape)):
            named = ", ".join(f"{letter} = {known[letter]}" for letter in wanted if letter in known)
            raise ValueError(f"{where}.{name} has shape {array.shape}, but ({', '.join(wanted)}) is needed: {named}")


def _agrees(letter: str, size: int, known: dict[str, int]) -> bool:
    """Whether a letter stands for this size; one that is new does from now on."""
    if letter == "*":
        return True
    return size == (int(letter) if letter.isdigit() else known.setdefault(letter, size))


def check_values(made: Any, where: str) -> None:
    """Whether numbers that compiled loops use as positions are positions of something."""
    if isinstance(made, DPState | Kept):
        _check_positions(made.labels, made.labels.size, f"{where}.labels")
    elif isinstance(made, KeptFeatures):
        n, K = made.shape
        if not (n >= 0 and K >= 0 and made.bits.dtype == np.uint8 and made.bits.size == -(-n * K // 8)):
            raise ValueError(f"{where}.bits are not those of {n} rows and {K} features")
    elif isinstance(made, GroupIndex):
        if sorted(made.number.values()) != list(range(made.labels.size)):
            raise ValueError(f"{where}.number does not number {made.labels.size} groups")
    elif isinstance(made, CategoryColumn):
        if len(made.levels) != made.share.size:
            raise ValueError(f"{where}.share is not that of {len(made.levels)} levels")
    elif isinstance(made, SharedModel):
        groups = 1 if made.names is None else made.names.labels.size
        _check_held(made.held, groups, made.model.centres.shape[0], f"{where}.held")


def _check_held(held: Held, groups: int, clusters: int, where: str) -> None:
    _check_positions(held.member, clusters, f"{where}.member")
    _check_positions(held.start, held.member.size + 1, f"{where}.start")
    edges = held.start.astype(np.int64)
    if edges.size != groups + 1 or edges[0] or edges[-1] != held.member.size or (np.diff(edges) < 0).any():
        raise ValueError(f"{where}.start does not part {held.member.size} clusters among {groups} groups")


def _check_positions(array: Array, count: int, where: str) -> None:
    if array.dtype.kind not in "iu" or (array.size and not (array.min() >= 0 and array.max() < count)):
        raise ValueError(f"{where} holds numbers that are not from 0 to {count - 1}")
