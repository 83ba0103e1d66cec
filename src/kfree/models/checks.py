"""The door: everything a user passes is checked here, once; below it, code trusts its input."""

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import norm as sparse_norm

from kfree.families import KL, LARGEST, MINUS_INF, Array, Family, Geometry, Separable, Summary, make_family
from kfree.families.base import FLOAT32, ROUNDING
from kfree.models.ranges import LENGTHS, check_smoothing_range, check_spread, check_weight_range, label_of
from kfree.rows import CsrRows, DenseRows, Rows
from kfree.rows.exact_sums import CostSum, ExactProducts, WeightRange, sum_of
from kfree.rows.threads import cut, over

WEIGHTINGS = ("none", "length", "relative")
_NONE = np.empty(0)
# Rows looked at together.
_BLOCK = 65_536
# Norms of rows whose squares keep their digits.
_NORMS = 1e-140, 1e150


class Ends(NamedTuple):
    """How small and large the entries of all rows are, where that matters."""

    least: float = np.inf  # the smallest above 0
    largest: float = 0.0
    short: float = np.inf  # share of the upper end of the domain that the largest below it is short of it

    @classmethod
    def of(cls, X: Any, scale: Array, family: Family) -> "Ends":
        """Of rows times their scales."""
        least, largest = _extent(X, scale) if family.lower > -np.inf else (np.inf, 0.0)
        return cls(least, largest, _short_of_upper_end(X, family) if family.upper < np.inf else np.inf)

    def joined(self, other: "Ends") -> "Ends":
        """Of these rows and others."""
        return Ends(min(self.least, other.least), max(self.largest, other.largest), min(self.short, other.short))

    @property
    def tiny(self) -> bool:
        """Whether entries are so small that no stand-in for infinity tells that a zero excludes them."""
        return self.least < LARGEST / -MINUS_INF


class Prepared(NamedTuple):
    """Rows ready for a fit, and what is needed to prepare others in the same way."""

    rows: Rows
    family: Family
    shift: Array  # (p,) subtracted from every row
    unit: float  # length of a row that weighs 1 with relative weighting, 0 if lengths do not matter
    ends: Ends
    once: Array  # (n,) weight of one copy of each row, or (0,) for ones: an integer sample_weight is so many copies


def _in_blocks(X: Any) -> Iterator[tuple[slice, Any]]:
    """Rows a block at a time, row after row: sums must not depend on the order in memory, and take little of it."""
    for span in cut(X.shape[0], _BLOCK):
        yield span, _block(X, span)


def _block(X: Any, span: slice) -> Any:
    return X[span] if sp.issparse(X) else np.ascontiguousarray(X[span])


def check_choice(name: str, value: Any, choices: tuple[str, ...], *others: str) -> str:
    """A parameter that is one of a few names; ``others`` are allowed too, but are not names."""
    known = ", ".join([*map(repr, choices), *others])
    if not isinstance(value, str):
        raise TypeError(f"{name} must be one of {known}, got {type(value).__name__}.")
    if value not in choices:
        raise ValueError(f"Unknown {name} {value!r}. Choose one of {known}.")
    return value


def check_number(
    name: str, value: Any, *, above: float = -np.inf, least: float = -np.inf, integer: bool = False, hint: str = ""
) -> None:
    """A real (or integer) parameter in a range; NaN is never in it."""
    if not isinstance(value, Integral if integer else Real) or isinstance(value, bool):
        wanted = "an integer" if integer else "a number"
        raise TypeError(f"{name} must be {wanted}, got {type(value).__name__} {value!r}. {hint}".rstrip())
    if not (float(value) > above and float(value) >= least):
        bound = f"> {above:g}" if above > -np.inf else f">= {least:g}"
        raise ValueError(f"{name} must be {bound}, got {value!r}. {hint}".rstrip())


def check_flag(name: str, value: Any) -> bool:
    """A parameter that is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {type(value).__name__} {value!r}.")
    return bool(value)


def check_finite(X: Any) -> None:
    """No NaN, no infinity; the message says how many and where the first one is."""
    values = X.data if sp.issparse(X) else X
    if values.dtype.kind not in "fc":
        return
    bad_rows, bad, first = 0, 0, None

    def is_suspect(span: slice) -> bool:
        with np.errstate(over="ignore", invalid="ignore"):
            return not np.isfinite(_block(X, span).sum(dtype=np.float64))

    spans = cut(X.shape[0], _BLOCK)
    for span, suspect in zip(spans, over(spans, is_suspect, values.size)):
        if not suspect:
            continue
        part = _block(X, span)
        entries = part.tocoo() if sp.issparse(part) else part
        wrong = ~np.isfinite(entries.data if sp.issparse(part) else entries)
        if not wrong.any():
            continue  # the sum overflowed, the entries did not
        at = np.stack([entries.row[wrong], entries.col[wrong]], axis=1) if sp.issparse(part) else np.argwhere(wrong)
        at = at[np.lexsort((at[:, 1], at[:, 0]))]
        bad_rows, bad = bad_rows + np.unique(at[:, 0]).size, bad + len(at)
        first = first if first is not None else (span.start + int(at[0, 0]), int(at[0, 1]))
    if first is not None:
        value = float(X[first])
        kind = "NaN" if np.isnan(value) else "infinity (inf)"
        raise ValueError(
            f"Input X contains {kind}: X[{first[0]}, {first[1]}] = {value:g}, and {bad} such entries (NaN or inf) in "
            f"{bad_rows} rows. Drop those rows or impute them, for instance with sklearn.impute.SimpleImputer."
        )


def check_domain(X: Any, family: Any, what: str = "divergence", name: str = "X") -> None:
    """Every entry in the family's domain; the message names the first that is not, and what to do about data."""
    if family.lower == -np.inf and family.upper == np.inf:
        return
    bad, first = 0, None
    for span, part in _in_blocks(X):
        values = part.data if sp.issparse(part) else part
        implicit = sp.issparse(part) and part.nnz < part.shape[0] * part.shape[1]
        ends = ([values.min(), values.max()] if values.size else []) + ([0] if implicit else [])
        least, largest = float(min(ends, default=0)), float(max(ends, default=0))
        if isinstance(family, Family):
            _check_size(span, part, least, largest, family, name)
        below = least <= family.lower if family.lower_open else least < family.lower
        if not below and largest <= family.upper:
            continue
        dense = part.toarray() if sp.issparse(part) else part
        wrong = (dense <= family.lower) if family.lower_open else (dense < family.lower)
        at = np.argwhere(wrong | (dense > family.upper))
        bad += len(at)
        first = first if first is not None else (span.start + int(at[0, 0]), int(at[0, 1]))
    if first is not None:
        sign = ">" if family.lower_open else ">="
        domain = f"entries {sign} {family.lower:g}" + (f" and <= {family.upper:g}" if family.upper < np.inf else "")
        more = f", and {bad - 1} more entries" if bad > 1 else ""
        negative = "Negative values in data: " if name == "X" and float(X[first]) < 0 <= family.lower else ""
        advice = family.advice if name == "X" else f"Pass {name} within this domain."
        raise ValueError(
            f"{negative}{what}={label_of(family)} needs {domain}, but {name}[{first[0]}, {first[1]}] = "
            f"{float(X[first]):g}{more}. {advice}"
        )


def _check_size(span: slice, part: Any, least: float, largest: float, family: Family, name: str) -> None:
    """Entries too large or too small to be computed with are an error; ``least`` and ``largest`` are of a block."""
    small = family.lower < least < family.smallest
    if largest <= family.largest and not small:
        return
    dense = part.toarray() if sp.issparse(part) else part
    i, j = np.unravel_index(int(dense.argmin() if small else dense.argmax()), dense.shape)
    low = f"between {family.smallest:g} and" if family.smallest else "up to"
    raise ValueError(
        f"divergence={label_of(family)} can compute with entries {low} {family.largest:g}, but "
        f"{name}[{span.start + i}, {j}] = {float(dense[i, j]):g}. Rescale the data, or drop such rows."
    )


def as_numbers(name: str, value: Any) -> Array:
    """A parameter as an array of float64."""
    try:
        given = np.asarray(value)
        if given.dtype.kind != "c":
            return np.ascontiguousarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers, got {value!r:.80}.") from None
    raise ValueError(f"{name} must hold real numbers, got complex ones.")


def check_entries(name: str, values: Array) -> None:
    """A parameter without NaN or infinity; the message says where the first one is."""
    wrong = np.argwhere(~np.isfinite(values))
    if len(wrong):
        place = ", ".join(map(str, wrong[0]))
        raise ValueError(
            f"{name} must be finite, but {name}[{place}] = {values[tuple(wrong[0])]:g} and {len(wrong)} of "
            f"{values.size} entries are NaN or infinite."
        )


def check_weight(sample_weight: Any, n: int) -> Array:
    """Weights as float64, one after the other in memory, or an empty array where there are none."""
    if sample_weight is None:
        return _NONE
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n, float(sample_weight))
    weight = as_numbers("sample_weight", sample_weight)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight has shape {weight.shape}, but X has {n} rows. Pass one weight for each row.")
    if not np.isfinite(weight).all():
        i = int(np.flatnonzero(~np.isfinite(weight))[0])
        raise ValueError(f"sample_weight must be finite, but sample_weight[{i}] = {weight[i]:g}.")
    if (weight < 0).any():
        i = int(np.flatnonzero(weight < 0)[0])
        raise ValueError(
            f"sample_weight must be >= 0, but sample_weight[{i}] = {weight[i]:g} and {int((weight < 0).sum())} are "
            "negative in all. Set them to 0 to leave rows out."
        )
    with np.errstate(over="ignore"):
        total = weight.sum()
    if not np.isfinite(total):
        raise ValueError("The sum of sample_weight overflows. Divide the weights by their largest.")
    if total == 0:
        raise ValueError("sample_weight is zero for every row: there is nothing to fit. Give some row a weight.")
    return np.ascontiguousarray(weight)


def row_scale(X: Any, family: Family, name: str = "X") -> tuple[Array, Array]:
    """Factors that normalise the rows and the row totals; rows that cannot be normalised are an error."""
    if family.normalise is None:
        return _NONE, _NONE
    size, (least, most) = np.empty(X.shape[0]), LENGTHS
    for span, part in _in_blocks(X):
        with np.errstate(over="ignore"):
            part = part.astype(np.float64, copy=False)  # scipy adds sparse rows up in their own precision
            size[span] = np.asarray(part.sum(axis=1)).ravel() if family.normalise == "sum" else _norms(part)
    unusable = np.flatnonzero((size != 0) & ~((size > least) & (size < most)))
    if unusable.size:
        i, kind = int(unusable[0]), "sum" if family.normalise == "sum" else "length"
        raise ValueError(
            f"divergence={label_of(family)} divides rows by their {kind}, which must lie between {least:g} and "
            f"{most:g}, but that of row {i} is {size[i]:g}, and {unusable.size} of {X.shape[0]} rows are like it. "
            "Rescale the data."
        )
    empty = np.flatnonzero(size == 0)
    if empty.size:
        some = ", ".join(map(str, empty[:5])) + (", ..." if empty.size > 5 else "")
        raise ValueError(
            f"divergence={label_of(family)} cannot use rows that are all zero, but {empty.size} of {X.shape[0]} are "
            f"(rows {some}{'' if name == 'X' else ' of ' + name}). Drop them before the fit."
        )
    return 1.0 / size, size


def _norms(X: Any) -> Array:
    """Lengths of rows; those whose squares are no numbers of full precision are measured in units of their largest
    entry."""
    size = np.asarray(sparse_norm(X, axis=1) if sp.issparse(X) else np.linalg.norm(X, axis=1))
    odd = np.flatnonzero(~((size > _NORMS[0]) & (size < _NORMS[1])))
    if odd.size:
        rows = X[odd].toarray() if sp.issparse(X) else X[odd]
        peak = np.abs(rows).max(axis=1)
        size[odd] = peak * np.linalg.norm(rows / np.where(peak > 0, peak, 1.0)[:, None], axis=1)
    return size


def weighted_mean(X: Any, weight: Array, scale: Array) -> Array:
    """Weighted mean of the (scaled) rows."""
    if sp.issparse(X):
        return mean_of(CsrRows(X, weight=weight, scale=scale))
    return mean_of(DenseRows(X, weight=weight, scale=scale, shift=np.zeros(X.shape[1])))


def mean_of(rows: Rows) -> Array:
    """Weighted mean of rows."""
    total, mass = rows.whole
    return total[0] / mass[0]


def summarise(X: Any, weight: Array, mean: Array) -> Summary:
    """What families may adapt to."""
    active = X[weight > 0] if weight.size and (weight == 0).any() else X
    values = active.data if sp.issparse(active) else active
    largest = float(values.max()) if values.size else 0.0

    def covariance() -> Array:
        w, spread = weight if weight.size else np.ones(X.shape[0]), np.zeros(X.shape[1])

        def gaps() -> Iterator[tuple[Array, Array]]:
            for span, part in _in_blocks(X):
                keep = w[span] > 0
                rows = part[keep].toarray() if sp.issparse(part) else np.asarray(part[keep], dtype=np.float64)
                with np.errstate(over="ignore", invalid="ignore"):  # what leaves the range is refused below
                    yield rows - mean, w[span][keep]

        for gap, _ in gaps():
            np.maximum(spread, np.abs(gap).max(axis=0, initial=0.0), out=spread)
        check_spread(spread, mean)
        products = ExactProducts(spread, WeightRange.of(weight))
        for gap, times in gaps():
            products.add(gap, times)
        return products.value / sum_of(w)

    return Summary(mean, largest, covariance)


def check_family(divergence: Any, X: Any) -> Family:
    """The family asked for, if it can measure these rows."""
    family = make_family(divergence)
    if sp.issparse(X) and not works_on_sparse(family):
        separable = isinstance(family, Separable)
        reason = "zeros lie outside its domain" if separable else "it is not a sum over columns"
        remedy = "Use divergence='poisson'" if separable else "Pass X.toarray(), or use divergence='sqeuclidean'"
        raise TypeError(f"divergence={label_of(family)} does not work on sparse rows because {reason}. {remedy}.")
    return family


def works_on_sparse(family: Family) -> bool:
    """True if rows may be sparse: the divergence is a sum over columns and zero is in its domain."""
    return isinstance(family, Separable) and not (family.lower_open and family.lower >= 0)


def make_rows(
    X: Any,
    family: Family,
    weight: Array,
    shift: Array | None,
    *,
    weighting: str = "none",
    unit: float = 0.0,
    ends: Ends | None = None,
) -> Prepared:
    """Rows of checked data; ``shift`` is the mean to subtract, None to take it from these rows.

    ``unit`` is the length that weighs 1 with relative weighting, 0 to take it from these rows, as ``ends`` is if these
    rows are all there are.
    """
    given, (scale, size) = X, row_scale(X, family)
    X, scale = _in_reach(X, scale)
    once = np.minimum(weight, 1.0) if weight.size else weight
    if weighting != "none":
        if not isinstance(family, KL):
            raise ValueError(
                f"weighting={weighting!r} weighs histograms by their length; divergence={label_of(family)} has none. "
                "Set weighting='none' and pass sample_weight instead."
            )
        if weighting == "relative":
            unit = unit or _average(size, weight)
            size = size / unit
        with np.errstate(over="ignore"):
            weight, once = (size * weight, size * once) if weight.size else (size, size)
    check_weight_range(weight, "sample_weight" if weighting == "none" else f"weighting={weighting!r}: weights")
    ends = Ends.of(X, scale, family) if ends is None else ends
    least, largest, _ = ends
    # products in single precision are twice as fast, and what they leave open is decided in double
    dtype = np.float32 if family.float32 and least >= FLOAT32[0] and largest <= FLOAT32[1] else np.float64
    ratio = ratio_of(ends, family)
    if sp.issparse(X):
        rows: Rows = CsrRows(X, weight=weight, scale=scale, dtype=dtype, ratio=ratio)
        rows.made = X is not given
        return Prepared(rows, family, np.zeros(X.shape[1]), unit, ends, once)
    if shift is not None or not family.translates:
        shift = np.zeros(X.shape[1]) if shift is None else shift
        rows = DenseRows(X, weight=weight, scale=scale, shift=shift, dtype=dtype, ratio=ratio)
    else:
        rows = DenseRows(X, weight=weight, scale=scale, shift=np.zeros(X.shape[1]), dtype=dtype)
        shift = near(mean_of(rows))
        rows = rows.shifted(shift, ratio)
    rows.made = X is not given
    return Prepared(rows, family, shift, unit, ends, once)


def ratio_of(ends: Ends, family: Family) -> float | None:
    """What sums must know of small entries: see ``Rows.ratio``."""
    if 0 < ends.least <= ends.largest < np.inf:
        return ends.least / ends.largest
    return None if family.translates else 1.0  # one value far away from the others must not take their digits


def _extent(X: Any, scale: Array) -> tuple[float, float]:
    """The smallest entry above 0 of scaled rows that are nowhere negative, and the largest."""
    least, largest = np.inf, 0.0
    for span, part in _in_blocks(X):
        if sp.issparse(part):
            values = part.data * np.repeat(scale[span], np.diff(part.indptr)) if scale.size else part.data
        else:
            rows = np.asarray(part, dtype=np.float64)
            values = np.stack([rows.min(axis=1, where=rows > 0, initial=np.inf), rows.max(axis=1)])
            values = values * scale[span] if scale.size else values
        least = min(least, float(values.min(where=values > 0, initial=np.inf)))
        largest = max(largest, float(values.max(where=values < np.inf, initial=0.0)))
    return least, largest


def _short_of_upper_end(X: Any, family: Family) -> float:
    """How much the largest entry that does not count as the upper end of the domain is short of it, as a share."""
    largest = 0.0
    for _, part in _in_blocks(X):
        values = np.asarray(part.data if sp.issparse(part) else part, dtype=np.float64)
        largest = max(largest, float(values.max(where=values < family.upper * (1 - ROUNDING), initial=0.0)))
    return 1 - largest / family.upper


def _in_reach(X: Any, scale: Array) -> tuple[Any, Array]:
    """Rows so long, or so short, that a weight times their scale might be no number, in other powers of two."""
    if not scale.size or (scale.min() > _NORMS[0] and scale.max() < 1.0 / _NORMS[0]):
        return X, scale
    digits, exponent = np.frexp(scale)
    X = X.astype(np.float64)
    if sp.issparse(X):
        X.data = np.ldexp(X.data, np.repeat(exponent, np.diff(X.indptr)))
        return X, digits
    return np.ldexp(X, exponent[:, None]), digits


def _average(size: Array, weight: Array) -> float:
    """Weighted mean, free of the order; in units of a power of two near the largest, so that no sum overflows."""
    exponent = int(np.frexp(size.max())[1])
    size, total = np.ldexp(size, -exponent), CostSum(1.0, WeightRange.of(weight))
    total.add(total.limbs(size, weight))
    return float(np.ldexp(total.value / (sum_of(weight) if weight.size else float(size.size)), exponent))


def near(mean: Array) -> Array:
    """The mean with 24 bits: to subtract it from whole numbers is then exact, and ties stay ties."""
    digits, exponent = np.frexp(mean)
    return np.ldexp(np.rint(digits * 2.0**24) / 2.0**24, exponent)


def make_geometry(
    family: Family, whole: tuple[Array, Array], shift: Array, tiny: bool, smoothing: float, smoothing_mean: Any
) -> Geometry:
    """The family bound to rows: anchored at their centre, with the smoothing prior the user asked for. ``whole`` is the
    sum (1, p) and weight (1,) of all rows."""
    mean = family.centre(*whole)[0]
    anchor = family.inside(mean)
    prior = None if smoothing_mean is None else _check_prior_mean(family, shift, smoothing_mean)
    check_smoothing_range(smoothing)
    if smoothing == 0:
        return Geometry(family, anchor, tiny=tiny)
    if not family.smoothable:
        raise ValueError(
            f"smoothing={smoothing:g} needs a divergence with a conjugate prior; {label_of(family)} has none. "
            "Set smoothing=0."
        )
    return Geometry(family, anchor, smoothing, mean if prior is None else prior, tiny)


def _check_prior_mean(family: Family, shift: Array, smoothing_mean: Any) -> Array:
    """Where the prior lies, in the coordinates of the rows."""
    prior = as_numbers("smoothing_mean", smoothing_mean)
    if prior.shape != shift.shape:
        raise ValueError(
            f"smoothing_mean has shape {prior.shape}, but X has {shift.size} columns. Pass one value for each."
        )
    check_entries("smoothing_mean", prior)
    check_domain(prior[None], family, name="smoothing_mean")
    if family.normalise == "sum":
        prior = prior * row_scale(prior[None], family, "smoothing_mean")[0]
    return prior - shift
