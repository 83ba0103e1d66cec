"""TablePreparer: a table of numbers, categories and dates as numbers that a clusterer can compare."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from kfree.estimators._saving import Saveable
from kfree.estimators._sklearn import check_frame, check_names_in, check_plain_table
from kfree.families import Array
from kfree.models.parameter_tables import TABLE_PREPARER
from kfree.models.parameters import check_parameters
from kfree.models.profile_names import Spoken
from kfree.models.tables import PreparedTable


class TablePreparer(Saveable, TransformerMixin, BaseEstimator):
    r"""A table as it is, made ready for clustering: each column weighs as one, and a line says what was done with it.

    Numbers are scaled to a median of 0 and a standard deviation of 1, for which the outermost hundredth at either end
    does not count. Long tails of large values are shortened first, by a square root or a logarithm, whichever leaves
    less skewness. Categories become one column for each level (one alone if there are two), scaled so that two rows of
    different levels are one standard deviation of a number apart, or less. However many levels there are, two rows
    drawn at random have

    .. math:: \mathrm{E} \lVert b - b' \rVert^2 \le 1/2, \qquad \mathrm{E} (z - z')^2 = 2

    where b are the columns of a category and z is a number. Dates are numbers of days. Missing values are set to the
    median; if there are more than 5 %, a column more says where they were. Left out is what cannot tell groups:
    constant columns, numbers of rows, text that is different in (almost) every row.

    Parameters
    ----------
    kinds : dict, default=None
        What columns are where their values do not tell: {"region": "category"}. By name, or by position for an array;
        "number", "category", "date" or "leave out". Columns that are not named are looked at.

    Attributes
    ----------
    report_ : list of str
        One line for each column of the table: what was done, and why.
    n_features_in_ : int
        Number of columns of the table.
    feature_names_in_ : array (n_features,)
        Their names, if it was a frame.

    See Also
    --------
    kfree.DPMeans : Clusters of what comes out.

    Examples
    --------
    >>> import numpy as np
    >>> from kfree import TablePreparer
    >>> table = np.array([[1, 20.0, "red"], [2, 21.0, "red"], [3, 80.0, "blue"], [4, 90.0, "blue"]], dtype=object)
    >>> preparer = TablePreparer(kinds={0: "leave out"}).fit(table)
    >>> print(preparer.explain())
    2 of 3 columns are used, as 2 numbers.
    x0: left out; as asked for
    x1: number; scaled
    x2: category; 'blue' or 'red'
    >>> preparer.inverse_transform(preparer.transform(table))[0]
    array([None, 20.0, 'red'], dtype=object)
    """

    _parameters = TABLE_PREPARER
    _table: PreparedTable

    def __init__(self, *, kinds=None):
        self.kinds = kinds

    def fit(self, X, y=None):
        """Look at a table and decide what to do with its columns.

        Parameters
        ----------
        X : frame or array (n, p)
            A frame of pandas, polars or Arrow; an array of numbers, or of objects.
        y : ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        X = check_frame(self, X, reset=True)
        names = [str(name) for name in getattr(self, "feature_names_in_", map("x{}".format, range(X.shape[1])))]
        table = PreparedTable.of(X, names, self._kinds(names))
        _check_something_left(table, X.shape[0])
        self._table = table
        self.report_ = [f"{column.name}: {column.why}" for column in table.columns]
        return self

    def transform(self, X):
        """The table as numbers.

        A level that the fit has not seen counts as rare if there are rare ones, and otherwise as the mean of all
        levels, which makes it no one's. Missing values are treated as in the fit.

        Parameters
        ----------
        X : frame or array (n, p)
            With the columns of the fit.

        Returns
        -------
        array (n, number of prepared columns); a frame after ``set_output``
        """
        check_is_fitted(self)
        return self._table.encode(check_frame(self, X, reset=False))

    def inverse_transform(self, X):
        """The way back: centres, say, in the units of the table.

        Numbers come back in their units, dates as dates, categories as the level with the largest share. A constant
        column comes back; of others that were left out nothing is known, and they are empty.

        Parameters
        ----------
        X : array (n, number of prepared columns)

        Returns
        -------
        frame or array (n, p)
            A frame of the library of the table that was fitted; an array if it was one.
        """
        check_is_fitted(self)
        X = check_plain_table(X)
        width = len(self._table.names())
        if X.shape[1] != width:
            raise ValueError(
                f"X has {X.shape[1]} columns, but the prepared table has {width}. Pass what transform gave, or centres "
                "of a model that was fitted to it."
            )
        return self._table.decode(np.asarray(X, dtype=np.float64))

    def get_feature_names_out(self, input_features=None):
        """Names of the prepared columns: that of the column, or of the column and a level.

        Parameters
        ----------
        input_features : array of str, default=None
            Compared with the names of the fit, which are used.

        Returns
        -------
        array of str
        """
        check_is_fitted(self)
        check_names_in(self, input_features)
        return np.array(self._table.names(), dtype=object)

    def explain(self):
        """What was done with each column and why, one line for each.

        Returns
        -------
        str
        """
        check_is_fitted(self)
        used = sum(bool(column.names()) for column in self._table.columns)
        width = len(self._table.names())
        first = f"{used} of {len(self.report_)} columns are used, as {width} number{'s' * (width > 1)}."
        return "\n".join([first, *self.report_])

    def _spoken(self) -> list[Spoken]:
        """How names of clusters speak of the prepared columns."""
        return self._table.spoken()

    def _shown(self, X: Array) -> list[Array]:
        """Each of the prepared columns as reports tell it."""
        return self._table.shown(X)

    def _check_parameters(self) -> None:
        check_parameters(self._parameters, {"kinds": self.kinds})

    def _kinds(self, names: list[str]) -> dict[int, str]:
        """What the user has said of columns, by position."""
        found = {}
        for key, kind in (self.kinds or {}).items():
            at = key if isinstance(key, int) and 0 <= key < len(names) else _position(key, names)
            found[at] = kind
        return found

    def __sklearn_is_fitted__(self):
        return hasattr(self, "_table")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        return tags


def _position(key: Any, names: list[str]) -> int:
    if key not in names:
        shown = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
        raise ValueError(f"kinds names a column {key!r}, which X does not have. Its columns are {shown}.")
    return names.index(key)


def _check_something_left(table: PreparedTable, n: int) -> None:
    if table.names():
        return
    rows = "1 sample (row)" if n == 1 else f"{n} rows"
    lines = "".join(f"\n{column.name}: {column.why}" for column in table.columns[:10])
    raise ValueError(
        f"No column of X tells rows apart, among {rows}. Pass more rows, or say what columns are by kinds.{lines}"
    )
