"""What each cluster is, in figures and words: size, centre, differences, typical rows, rows at its border."""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Array, Family
from kfree.inference.content import hash_rows
from kfree.models.column_facts import ColumnFacts, look_at_columns
from kfree.models.profile_names import Spoken, Traits, name_clusters
from kfree.models.sights import Seen, Sight
from kfree.rows.threads import cut

# Typical rows, and rows at the border, that are shown of each cluster.
_SHOWN = 5
# Rows, and entries of a table of rows and clusters, that are looked at together.
_ROWS, _ENTRIES = 16_384, 1 << 21
# How much nearer (as a share of the distance), or likelier, its own cluster may be to a row at the border.
_BORDER = 0.5
# Standard deviations by which centres differ from the overall mean by rounding.
_NOTHING = 1e-9
# Columns that a person may know by their numbers.
_KNOWN = 30
# Numbers that are told without decimals.
_WHOLE = 1e3, 1e9


class Profile(NamedTuple):
    """What each of K clusters is. Typical and border rows are positions in X, -1 where there are fewer.

    Attributes
    ----------
    names : tuple of str (K,)
        A short name for each cluster, such as "much fresh, little grocery"; no two are alike. Words are chosen by how
        many standard deviations of a column the centre is from the overall mean: half of one is worth a word, two are
        worth a "very". Clusters that are nowhere so far from it are "about average". Where more than 30 columns are
        only numbered, as in embeddings and pictures, it is the most typical row: "like row 812".
    size : array (K,)
        Weight of the rows of each cluster; their number without weights.
    share : array (K,)
        The same as a share of all rows.
    centre : array (K, p)
        Centres in the users' units (histograms for "kl" and "multinomial", unit vectors for "cosine").
    overall : array (p,)
        The same of all rows.
    columns : tuple of str (p,)
        Names of the columns; "column 3" where they have none.
    contribution : array (K, p)
        Share of a column in the divergence of a cluster's centre from the overall mean, with the sign of the
        difference: sizes sum to 1 (0 if there is no difference). It depends on the units of the columns where the
        divergence does. Mixtures of Gaussians: squared differences in units of the components' mean covariance.
    typical : array (K, m) of int
        Rows nearest the centre, all different.
    border : array (K, m) of int
        Rows whose second-best cluster is nearly as good, the most undecided first, all different: the second centre is
        at most twice as far, or for mixtures the two probabilities differ by at most a half.
    rival : array (K, m) of int
        That other cluster.
    """

    names: tuple[str, ...]
    size: Array
    share: Array
    centre: Array
    overall: Array
    columns: tuple[str, ...]
    contribution: Array
    typical: Array
    border: Array
    rival: Array

    def differences(self, k: int, n: int = 5) -> list[tuple[str, float, float, float]]:
        """Columns that contribute most to what makes a cluster different.

        Parameters
        ----------
        k : int
            The cluster.
        n : int, default=5
            How many, at most.

        Returns
        -------
        list of (column, centre, overall, contribution)
        """
        size = np.abs(self.contribution[k])
        first = [j for j in np.argsort(-size, kind="stable")[:n] if size[j] > 0]
        return [
            (self.columns[j], float(self.centre[k, j]), float(self.overall[j]), float(self.contribution[k, j]))
            for j in first
        ]

    def to_frame(self, like: Any) -> Any:
        """A table with one row a cluster, of the package that ``like`` is a frame of.

        Parameters
        ----------
        like : pandas or polars frame
            The rows that were described; typical and border rows are told by the index of a pandas frame.

        Returns
        -------
        frame
            Columns "name", "size", "share", "different" (in words), the centre in each column, "typical" and "border".
        """
        index = like.index if _package(like) == "pandas" else np.arange(like.shape[0])
        told: dict[str, Any] = {
            "name": list(self.names),
            "size": self.size,
            "share": self.share,
            "different": [self._different(k) for k in range(len(self.names))],
        }
        own = {*told, "typical", "border", "cluster"}
        for j, column in enumerate(self.columns):
            told[f"{column} (centre)" if column in own or column in told else column] = self.centre[:, j]
        for name, rows in (("typical", self.typical), ("border", self.border)):
            told[name] = [[index[i] for i in line if i >= 0] for line in rows]
        if _package(like) == "pandas":
            import pandas as pd

            return pd.DataFrame(told, index=pd.RangeIndex(len(self.names), name="cluster"))
        import polars as pl

        return pl.DataFrame({"cluster": np.arange(len(self.names)), **told})

    def _different(self, k: int) -> str:
        told = self.differences(k, 3)
        return ", ".join(f"{name} {_figure(own, all_)} ({_figure(all_, own)} overall)" for name, own, all_, _ in told)

    def __repr__(self) -> str:
        """Names, sizes and the largest differences, a line a cluster."""
        width, many = max(map(len, self.names)), f"{len(self.names)} cluster" + "s" * (len(self.names) > 1)
        lines = [
            f"{k:3d}  {name:<{width}}  {self.size[k]:.6g} ({self.share[k]:.1%})  {self._different(k)}"
            for k, name in enumerate(self.names)
        ]
        return "\n".join([f"Profile of {many}, {len(self.columns)} columns", *lines])


def _figure(value: float, beside: float) -> str:
    """A number of four digits; 0 for what is rounding beside another."""
    if abs(value) <= _NOTHING * abs(beside):
        return "0"
    return f"{value:.0f}" if _WHOLE[0] <= abs(value) < _WHOLE[1] else f"{value:.4g}"


def is_frame(X: Any) -> bool:
    """Whether X is a frame that profiles can answer in kind."""
    return _package(X) in ("pandas", "polars") and hasattr(X, "columns")


def _package(X: Any) -> str:
    return type(X).__module__.partition(".")[0]


def column_names(X: Any, fitted: Any, p: int) -> tuple[str, ...]:
    """Names of columns: those of X, those of the fit, or numbers."""
    names = X.columns if is_frame(X) else fitted
    return tuple(f"column {j}" for j in range(p)) if names is None else tuple(str(name) for name in names)


class _Few(NamedTuple):
    """A few rows of each cluster, the best first."""

    label: Array
    key: Array  # the less the better
    row: Array  # position in X
    content: Array  # hash: rows of equal content count once
    rival: Array

    def with_(self, other: "_Few") -> "_Few":
        """The best of both, all different, as many as are shown of each cluster."""
        both = _Few(*(np.concatenate(pair) for pair in zip(self, other)))
        order = np.lexsort((both.row, both.key, both.label))
        order = order[np.sort(np.unique(both.content[order], return_index=True)[1])]
        label = both.label[order]
        place = np.arange(order.size) - np.searchsorted(label, label)
        return _Few(*(field[order[place < _SHOWN]] for field in both))

    def tables(self, K: int) -> tuple[Array, Array]:
        """Positions and rivals (K, m), -1 where there are fewer."""
        rows, rivals = np.full((2, K, _SHOWN), -1)
        place = np.arange(self.label.size) - np.searchsorted(self.label, self.label)
        rows[self.label, place], rivals[self.label, place] = self.row, self.rival
        return rows, rivals


def _none() -> _Few:
    return _Few(*(np.empty(0, kind) for kind in (np.intp, float, np.intp, np.uint64, np.intp)))


def profile_of(
    seen: Seen,
    X: Any,
    weight: Array,
    columns: tuple[str, ...],
    spoken: Sequence[Spoken],
    called: Callable[[int], str],
) -> Profile:
    """The profile of the clusters of a fitted model, told by rows (n, p) that have been checked; in names columns are
    spoken of as ``spoken`` says, if it says anything, and rows by what they are ``called``."""
    sight, labels = seen.sight, seen.labels
    centre, yardstick = sight.centres(), sight.yardstick
    facts = look_at_columns(X, weight, yardstick.family, seen.weighting)
    overall = facts.mean
    if yardstick.family.normalise == "norm":  # the direction of all rows, as centres are directions
        overall = yardstick.family.centre(overall[None], np.ones(1))[0]
    gap = _in_deviations(centre - overall, facts.spread)
    contribution = yardstick.contribution(centre, overall, np.abs(gap) > _NOTHING)
    kind = _kinds(facts, yardstick.family)
    alike = bool((kind == kind[0]).all() and kind[0] in ("flag", "count"))
    told = tuple(own.words for own in spoken) or columns
    kind = np.array([own.kind or usual for own, usual in zip(spoken, kind)]) if spoken else kind
    names = name_clusters(Traits(told, centre, overall, gap, np.abs(contribution if alike else gap), kind))
    K, known = centre.shape[0], labels >= 0
    size = np.bincount(labels[known], weight[known] if weight.size else None, K).astype(np.float64)
    total = float(weight.sum()) if weight.size else float(labels.size)
    typical, border = _look_at_rows(sight, X, labels, weight)
    (nearest, _), (between, rival) = typical.tables(K), border.tables(K)
    if len(told) > _KNOWN and _only_numbered(told):
        names = tuple(f"like {called(row)}" if row >= 0 else name for name, row in zip(names, nearest[:, 0].tolist()))
    return Profile(names, size, size / total, centre, overall, columns, contribution, nearest, between, rival)


def _only_numbered(columns: Sequence[str]) -> bool:
    """Whether names of columns differ in numbers alone."""
    return len({re.sub(r"\d+", "", name) for name in columns}) == 1


def _in_deviations(gap: Array, spread: Array) -> Array:
    """Differences in units of columns' standard deviations; 0 where a column does not vary."""
    return np.where(spread > 0, gap / np.where(spread > 0, spread, 1.0), 0.0)


def _kinds(facts: ColumnFacts, family: Family) -> Array:
    """What the numbers in each column are."""
    counts = (family.counts or family.normalise == "sum") and facts.few
    usual = "count" if counts else "amount" if facts.amounts or family.counts else "level"
    return np.where(facts.flag, "flag", usual)


def _look_at_rows(sight: Sight, X: Any, labels: Array, weight: Array) -> tuple[_Few, _Few]:
    """Typical rows and rows at the border; rows without weight, or without cluster, are neither."""
    typical, border = _none(), _none()
    K = sight.centres().shape[0]
    for span in cut(X.shape[0], max(1, min(_ROWS, _ENTRIES // max(K, 1 if sp.issparse(X) else X.shape[1])))):
        counted = labels[span] >= 0
        if weight.size:
            counted &= weight[span] > 0
        if not counted.any():
            continue
        rows = X[span] if counted.all() else X[span][counted]
        label, place = labels[span][counted].astype(np.intp), span.start + np.flatnonzero(counted)
        found = sight.look(rows, label)
        content = hash_rows(rows if sp.issparse(rows) else np.ascontiguousarray(rows, dtype=np.float64))
        typical = typical.with_(_Few(label, found.cost, place, content, found.rival))
        near = np.flatnonzero(found.margin <= _BORDER)
        some = _Few(label, found.margin, place, content, found.rival)
        border = border.with_(_Few(*(field[near] for field in some)))
    return typical, border
