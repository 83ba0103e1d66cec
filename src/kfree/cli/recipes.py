"""How a table was read before a model was fitted: kept beside the model, so that new rows are read the same way."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import kfree
from kfree.cli.talk import Problem

MODEL, RECIPE = "model.kfree", "recipe.json"
#: The number of this format.
_FORMAT = 1


class Recipe(NamedTuple):
    """How rows are read."""

    command: str  # the command that fitted the model
    columns: list[str]  # names of the columns, or the words that are counted
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
    """A model that was kept, and its recipe if there is one."""

    model: Any
    recipe: Recipe | None


def read_kept(name: str) -> Kept:
    """A model from a folder that a command wrote, or from a file that ``save`` wrote."""
    path = Path(name)
    file = path / MODEL if path.is_dir() else path
    if not file.exists():
        wish = f"There is no {MODEL} in {name}" if path.is_dir() else f"There is no file {name}"
        raise Problem(
            f"{wish}. Pass a folder that kfree cluster, topics, features or mixture has written, or a model in it."
        )
    return Kept(kfree.load(file), _read_recipe(file.parent / RECIPE) if file.name == MODEL else None)


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
