"""Models as files, without pickle: ``save`` for every estimator, and ``load``."""

from typing import Any

from kfree import __version__, estimators
from kfree.models.stored_files import read_file, write_file
from kfree.models.stored_values import Reader, Writer

# Attributes that belong to a program and not to a model: the callbacks of scikit-learn.
_LEFT_OUT = ("_skl_callbacks",)


class Saveable:
    """An estimator that can be kept as a file."""

    def save(self, path):
        """Keep this model, fitted or not, as a file that :func:`kfree.load` reads without running code.

        The file is a zip of arrays (.npy) and a JSON text. A file that is already there is overwritten, once the new
        one is complete: an error on the way leaves it as it was.

        Parameters
        ----------
        path : str or path
            Where; no ending is added. "customers.kfree" is a good name.
        """
        kinds = _estimators()
        if type(self) not in kinds.values():
            raise TypeError(
                f"save keeps kfree's own estimators, and {type(self).__name__} is not one of them: loading would have "
                "to run its code. joblib.dump(model, path) keeps it, by pickle."
            )
        writer = Writer(kinds, _LEFT_OUT)
        model = writer.write(self, type(self).__name__)
        write_file(path, __version__, model, writer.arrays)


def load(path):
    """Read a model that ``save`` wrote.

    Nothing in the file is run: classes come from a fixed list, arrays are numbers and text, and shapes are checked. The
    model predicts, transforms and goes on learning as the one that was saved, bit for bit on the same machine.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    estimator

    Raises
    ------
    ValueError
        If the file is damaged, was altered, comes from a newer kfree with another format, or is no such file.

    Examples
    --------
    >>> import os, tempfile
    >>> import kfree
    >>> model = kfree.DPMeans(n_clusters=2).fit([[0.0], [0.1], [9.0]])
    >>> path = os.path.join(tempfile.mkdtemp(), "points.kfree")
    >>> model.save(path)
    >>> kfree.load(path).predict([[8.0]])
    array([1], dtype=int32)
    """
    try:
        model, arrays = read_file(path, __version__)
        reader = Reader(_estimators(), arrays)
        found = reader.read(model, "model")
        if not isinstance(found, Saveable):
            raise ValueError("there is no estimator in it")
        if reader.unused:
            raise ValueError(f"{min(reader.unused)}.npy belongs to no part of the model")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be loaded: {error}.") from error
    return found


def _estimators() -> dict[str, Any]:
    """The public estimators by name; looked up when asked, for they are made from the class above."""
    return {
        name: kind for name, kind in vars(estimators).items() if isinstance(kind, type) and issubclass(kind, Saveable)
    }
