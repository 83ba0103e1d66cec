"""What every fit has in common, whatever is fitted: its parameters are checked by the table of the class."""

from typing import ClassVar

from sklearn.base import BaseEstimator

from kfree.models.parameters import Table, check_parameters


class RunningEstimator(BaseEstimator):
    """An estimator of kfree."""

    #: What each parameter may be.
    _parameters: ClassVar[Table]

    def _check_parameters(self) -> None:
        """Every parameter by itself; classes add what joins several."""
        check_parameters(self._parameters, {name: getattr(self, name) for name in self._parameters})
