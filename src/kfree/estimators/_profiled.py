"""What clusters are, in words: the part that all clusterers and mixtures share."""

from typing import Any

from sklearn.utils.validation import check_is_fitted

from kfree.estimators._sklearn import check_weighted_table
from kfree.models.checks import check_weight
from kfree.models.profiles import Profile, column_names, is_frame, profile_of
from kfree.models.sights import Seen
from kfree.rows import set_span_threads


class Profiled:
    """A fitted model whose clusters can be described."""

    def profile(self, X, sample_weight=None):
        """What each cluster is: its size, its centre, what makes it different, typical rows, rows at its border, and a
        short name made of these.

        Parameters
        ----------
        X : array, frame or CSR matrix (n, p)
            Rows to describe the clusters by: those of the fit, or others.
        sample_weight : array (n,), default=None

        Returns
        -------
        Profile, or a frame
            A pandas or polars frame gives a frame of its kind with one row a cluster, anything else a ``Profile``,
            whose fields are ``names``, ``size``, ``share``, ``centre``, ``overall``, ``columns``, ``contribution``,
            ``typical``, ``border`` and ``rival``; ``differences(k)`` lists what makes a cluster different.
        """
        profile = self._profile(X, sample_weight)
        return profile.to_frame(X) if is_frame(X) else profile

    def _profile(
        self, X: Any, sample_weight: Any = None, *, spoken: Any = (), called: Any = None, **asked: Any
    ) -> Profile:
        """The profile, whatever X is; ``spoken`` is how names speak of the columns, ``called`` tells what a row is
        called, and what else there is to say of rows is passed on to ``_seen``."""
        check_is_fitted(self)
        table, sample_weight = check_weighted_table(self, X, sample_weight, reset=False)
        weight = check_weight(sample_weight, table.shape[0])
        columns = column_names(X, getattr(self, "feature_names_in_", None), table.shape[1])
        with set_span_threads():
            return profile_of(self._seen(table, **asked), table, weight, columns, spoken, called or "row {}".format)

    def _seen(self, X: Any, **asked: Any) -> Seen:
        """How the model sees checked rows."""
        raise NotImplementedError
