"""Three small tables that are made or come with scikit-learn, run through the same commands as any file."""

from pathlib import Path
from typing import Any

import numpy as np

from kfree.cli.files import Asked
from kfree.cli.fits import Order, fit
from kfree.cli.outputs import Columns, check_free, write_table
from kfree.cli.tables import Pick
from kfree.cli.talk import Talk

#: Kinds of customers: how many, and the typical orders a year, basket, discount used and days since the last order.
_CUSTOMERS = {
    "regulars": (220, (26.0, 38.0, 0.05, 9.0)),
    "bargain hunters": (150, (11.0, 17.0, 0.6, 30.0)),
    "big baskets": (90, (5.0, 160.0, 0.08, 60.0)),
    "nearly gone": (140, (1.6, 33.0, 0.15, 270.0)),
}
_COLUMNS = ("orders a year", "basket", "discount share", "days since last order")
#: What people write about, and the words they use.
_SUBJECTS = {
    "garden": "seed soil bed compost tomato water sun leaf root spring prune flower bee fence mulch",
    "kitchen": "oven flour butter salt onion simmer knife taste sauce bake garlic spoon crust season plate",
    "travel": "train ticket harbour museum map hotel border coast bridge luggage market guide island station tram",
    "computer": "file memory screen server code cable update login browser network printer error disk folder key",
}
_WRITTEN, _LENGTH = 240, 60
_STORIES = {
    "customers": "600 customers of a shop, four figures each. Nobody said how many kinds there are. "
    "Each cluster below is a kind, with its typical figures.",
    "digits": "1797 handwritten digits, 64 grey values each, as pictures of 8 x 8. Nobody said that there are ten. "
    "Clusters are ways of writing one.",
    "texts": "240 notes about four subjects, written in random order. Nobody said what a subject is. "
    "Each topic below is told by its words.",
}


def show(out: str, page: bool, force: bool, talk: Talk) -> int:
    """Write the tables, and run a command on each."""
    folder = Path(out)
    check_free(folder, ["customers.csv", "digits.npy", "texts.txt", *_STORIES], force)
    folder.mkdir(exist_ok=True)
    files = {"customers": _customers(folder), "digits": _digits(folder), "texts": _texts(folder)}
    for name, file in files.items():
        talk.note(f"\n== {name} ==\n{_STORIES[name]}")
        command = "topics" if name == "texts" else "cluster"
        settings: dict[str, Any] = {"divergence": "kl", "smoothing": 0.1} if name == "digits" else {}
        pick = Pick(id="customer") if name == "customers" else Pick()
        shown = "".join(f" --{key} {value}" for key, value in settings.items()) + " --images 8x8" * (name == "digits")
        talk.note(f"$ kfree {command} {file}{' --id customer' if pick.id else ''}{shown} --out {folder / name}\n")
        images = (8, 8) if name == "digits" else None
        order = Order(command, str(file), Asked(), pick, settings, talk, str(folder / name), page=page, force=force)
        if code := fit(order._replace(images=images)):
            return code
    return 0


def _customers(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    sizes = [n for n, _ in _CUSTOMERS.values()]
    typical = np.repeat([middle for _, middle in _CUSTOMERS.values()], sizes, axis=0)
    values = typical * np.exp(rng.normal(0.0, 0.25, typical.shape))
    order = rng.permutation(len(values))
    names = [f"C{i:04d}" for i in range(len(values))]
    write_table(
        folder / "customers.csv",
        Columns(["customer", *_COLUMNS], [names, *np.round(values[order], 2).T.tolist()]),
    )
    return folder / "customers.csv"


def _digits(folder: Path) -> Path:
    from sklearn.datasets import load_digits

    np.save(folder / "digits.npy", load_digits().data)
    return folder / "digits.npy"


def _texts(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    words = [text.split() for text in _SUBJECTS.values()]
    shares = rng.dirichlet(np.full(len(words), 0.1), _WRITTEN)
    lines = [" ".join(str(rng.choice(words[k])) for k in rng.choice(len(words), _LENGTH, p=share)) for share in shares]
    (folder / "texts.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "texts.txt"
