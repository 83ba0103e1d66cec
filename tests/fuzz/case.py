"""One input: a table, weights, an estimator and its parameters; written to and read from small files."""

import json
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from fuzz.tables import lay_out


class Case(NamedTuple):
    """All that a check needs, and nothing that is drawn anew."""

    subject: str  # public name of an estimator or function
    params: dict[str, Any]
    values: np.ndarray  # (n, p) float64
    weight: np.ndarray | None = None  # (n,)
    groups: np.ndarray | None = None  # (n,) for estimators that have them
    other: np.ndarray | None = None  # (m, p) rows that the fitted model is asked about
    relation: str = ""  # what a second fit is compared with
    dtype: str = "float64"
    layout: str = "C"
    kind: str = ""  # of the table; for the reader
    ordinary: bool = False  # rounding decides nothing here, so that two fits can be compared label by label
    seed: int = 0  # of what a relation draws

    @property
    def X(self) -> Any:
        """The table as it is passed."""
        return lay_out(self.values, self.dtype, self.layout)

    @property
    def entries(self) -> np.ndarray:
        """The numbers that are passed, (n, p) float64."""
        X = self.X
        return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)

    @property
    def size(self) -> str:
        """Rows and columns, for the reader."""
        return " x ".join(map(str, self.values.shape))

    def rows(self, which: Any) -> "Case":
        """The same with some of the rows."""
        part = {name: getattr(self, name) for name in ("values", "weight", "groups")}
        return self._replace(**{name: None if value is None else value[which] for name, value in part.items()})

    def to_json(self) -> str:
        """As text; floats come back bit for bit."""
        return json.dumps(self._asdict(), default=lambda array: array.tolist(), indent=1)

    @classmethod
    def from_json(cls, text: str) -> "Case":
        """What ``to_json`` wrote."""
        fields = json.loads(text)
        for name, dtype in (("values", float), ("weight", float), ("groups", int), ("other", float)):
            if fields.get(name) is not None:
                fields[name] = np.array(fields[name], dtype=dtype)
        for name in ("values", "other"):  # a table without rows or columns is written as a list without either
            if fields.get(name) is not None and fields[name].ndim == 1:
                fields[name] = fields[name].reshape(len(fields[name]), 0)
        return cls(**fields)
