"""How a table was read before a model was fitted: kept beside the model, so that new rows are read the same way."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import kfree
from kfree.cli.talk import Problem

MODEL, PREPARER, RECIPE = "model.kfree", "preparer.kfree", "recipe.json"
#: The number of this format.
_FORMAT = 1


class Recipe(NamedTuple):
    """How rows are read."""

    command: str  # the command that fitted the model
    columns: list[str]  # names of the columns of the file, or the words that are counted
    id: str | None = None
    group: str | None = None
    text: str = ""  # column of the texts; "" if they are not in one

    def write(self, folder: Path) -> None:
        """Put it beside the model."""
        text = json.dumps(
            {"format": _FORMAT, "kfree": kfree.__version__, **self._asdict()}, ensure_ascii=False, indent=1
        )
        (folder / RECIPE).write_text(text + "\n", encoding="utf-8")


class Kept(NamedTuple):
    """A model that was kept, and its recipe and preparer if there are any."""

    model: Any
    recipe: Recipe | None = None
    preparer: Any = None


def read_kept(name: str) -> Kept:
    """A model from a folder that a command wrote, or from a file that ``save`` wrote."""
    path = Path(name)
    file = path / MODEL if path.is_dir() else path
    if not file.exists():
        wish = f"There is no {MODEL} in {name}" if path.is_dir() else f"There is no file {name}"
        raise Problem(
            f"{wish}. Pass a folder that kfree cluster, topics, features or mixture has written, or a model in it."
        )
    model = kfree.load(file)
    if file.name != MODEL:  # it was renamed or moved: what lies beside it may belong to another
        return Kept(model)
    preparer = file.parent / PREPARER
    return Kept(model, _read_recipe(file.parent / RECIPE), kfree.load(preparer) if preparer.exists() else None)


def _read_recipe(path: Path) -> Recipe | None:
    if not path.exists():
        return None
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        format = said.pop("format")
        said.pop("kfree")
        if format != _FORMAT:
            raise ValueError(f"its format is {format}, and this kfree knows {_FORMAT}")
        return Recipe(**said)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Problem(
            f"{path} cannot be read: {error}. Fit the model again, or use another version of kfree."
        ) from error
