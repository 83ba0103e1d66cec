"""``kfree.report``: a model on one page that can be sent to somebody."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from kfree.displays.palette import colours
from kfree.reports.asked import check_asked
from kfree.reports.contents import Explorer, page_of
from kfree.reports.scatter import NUMBERED
from kfree.reports.svg import SHADES, Markup

#: How far colours are lifted to white on dark ground.
_LIFT = 0.25


def report(model: Any, X: Any, path: Any, texts: Any = None, images: Any = None, preparer: Any = None) -> Path:
    """Write what a model found to one HTML file, which can be sent to somebody.

    The page says in words what was asked and found, and shows a map of rows, the sizes, a card for each cluster, topic
    or feature, and figures of the data and the fit. For :class:`DPMeans` and :class:`HDPTopics` a slider shows fewer or
    more of them. The file needs no other one and asks for nothing from anywhere; of the data it holds only the few rows
    that it shows. Needs jinja2: ``pip install "kfree[report]"``.

    Parameters
    ----------
    model : fitted estimator of kfree
    X : array, frame or CSR matrix (n, p)
        The rows of the fit; names of columns and of a pandas index are used.
    path : str or Path
        Where to write; a file that is there is replaced.
    texts : sequence of n texts, default=None
        What to show of a row in place of its entries: the text it was made from, a title, a name.
    images : tuple (h, w) or (h, w, 3), or array (n, h, w) or (n, h, w, 3), default=None
        The shape of the picture that a row is, or a picture of each row.
    preparer : TablePreparer, default=None
        What has made X of your table: centres are then told in the units of the table.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from kfree import DPMeans, report
    >>> X = np.array([[0.0, 0.1], [0.2, 0.0], [5.0, 5.1], [5.2, 4.9], [9.0, 0.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = report(DPMeans(n_clusters=3).fit(X), X, f"{folder}/page.html")
    ...     "3 clusters" in page.read_text(encoding="utf-8")
    True
    """
    environment = _environment()  # before any work: what is missing is said at once
    target = _check_path(path)
    page = page_of(check_asked(model, X, texts, images, preparer))
    shades = [(colour, _lifted(colour)) for colour in colours(SHADES)]
    html = environment.get_template("page.html").render(
        page=page, shades=shades, numbered=NUMBERED, data=_data(page.explorer)
    )
    _write(target, html)
    return target


def _environment() -> Any:
    """Templates whose values are escaped."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise ImportError('A report needs jinja2: pip install "kfree[report]".') from None
    return Environment(
        loader=PackageLoader("kfree.reports", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _check_path(path: Any) -> Path:
    """Where a file can be written."""
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder. Pass the name of a file in it, such as report.html.")
    if not target.absolute().parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.absolute().parent} to write {target.name} into. Make it.")
    return target


def _lifted(colour: str) -> str:
    """A colour for dark ground: part of the way to white."""
    channels = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(c + _LIFT * (255 - c)):02x}" for c in channels)


def _data(explorer: Explorer | None) -> Markup:
    """What the slider needs, as JSON that can stand in a page: nothing in it ends the element it stands in."""
    stops = (
        []
        if explorer is None
        else [
            {"said": said, "sizes": sizes, "at": stop.labels[explorer.points].tolist()}
            for said, sizes, stop in zip(explorer.said, explorer.sizes, explorer.stops.stops)
        ]
    )
    text = json.dumps(stops, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _write(target: Path, html: str) -> None:
    """The whole file or none: what was there stays until all is written."""
    handle, name = tempfile.mkstemp(dir=target.absolute().parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(html)
        os.chmod(name, 0o666 & ~_umask())  # mkstemp's files are for their owner only
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    """What new files of this process may not be."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
