"""Options for the parameters of estimators, read from their docstrings, which the tests hold to the parameter tables.

The source is read, not imported: help then needs neither numpy nor scikit-learn, and comes at once. Values are checked
by the tables themselves, before any file is read.
"""

import ast
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

#: Where the classes that commands use are written.
_FILES = {
    "DPMeans": "dp_means",
    "HDPMeans": "hdp_means",
    "HDPTopics": "hdp_topics",
    "BPMeans": "bp_means",
    "KFeatures": "k_features",
    "VariationalDPMixture": "variational",
}
#: Shorter names of the numbers that people know.
_SHORT = {
    "n_clusters": ("--clusters", "-k"),
    "n_topics": ("--topics", "-k"),
    "n_components": ("--features", "-k"),
}
#: Characters of help, unless the first sentence is longer; the rest is in the docs.
_LENGTH = 240
#: What a command says in its own way, or has no use for.
_LEFT_OUT = ("verbose", "warm_start")
#: How parameters begin that may be a model, which is a file here.
_MODEL = "fitted model"
#: A docstring's section of parameters, and one entry of it: names, what they may be, text.
_SECTION = re.compile(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-{3,}\n)", re.DOTALL | re.MULTILINE)
_ENTRY = re.compile(r"^(\w[\w, ]*?)(?: : ([^\n]*))?\n((?:[ ]+[^\n]*\n|\n)*)", re.MULTILINE)


class Said(NamedTuple):
    """What a docstring says of a parameter."""

    kind: str  # what it may be
    default: str  # as it is written
    text: str  # what it does


@cache
def parameters(cls: str) -> dict[str, Said]:
    """Every parameter of a class, in order; "As in" another class is looked up there."""
    path = Path(__file__).parents[1] / "estimators" / f"{_FILES[cls]}.py"
    classes = {node.name: node for node in ast.parse(path.read_bytes()).body if isinstance(node, ast.ClassDef)}
    section = _SECTION.search(ast.get_docstring(classes[cls]) or "")
    found: dict[str, Said] = {}
    for names, kind, text in _ENTRY.findall(section[1] if section else ""):
        other = re.match(r"\s+As in :class:`(\w+)`", text)
        for name in names.split(", "):
            there = parameters(other[1])[name] if other else None
            what, _, default = kind.partition("default=")
            found[name] = Said(what.strip(", "), default, text if there is None else there.text)
            if there is not None and not kind:
                found[name] = there
    return found


class Value(click.ParamType):
    """A number, a name, true, false or none, as a parameter table wants it; the table says what is wrong."""

    name = "value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The text as what it stands for."""
        if not isinstance(value, str):
            return value
        known = {"none": None, "true": True, "false": False}
        if value.lower() in known:
            return known[value.lower()]
        for number in (int, float):
            try:
                return number(value)
            except ValueError:
                continue
        return value


class ModelOption(click.Option):
    """An option that is a parameter of one or more estimators."""


def model_options(classes: Iterable[str]) -> list[ModelOption]:
    """An option for each parameter that can be said in a word; of parameters that classes share the first one's."""
    said: dict[str, Said] = {}
    for cls in classes:
        said = {**parameters(cls), **said}
    order = [name for cls in classes for name in parameters(cls)]
    return [_option(name, said[name]) for name in dict.fromkeys(order) if _in_a_word(name, said[name])]


def _in_a_word(name: str, said: Said) -> bool:
    words = re.search(r'\b(float|int|bool|str)\b|"', said.kind)
    return name not in _LEFT_OUT and (words is not None or said.kind.startswith(_MODEL))


def _option(name: str, said: Said) -> ModelOption:
    dashed, text = name.replace("_", "-"), _plain(said.text)
    if said.kind == "bool":
        return ModelOption([f"--{dashed}/--no-{dashed}"], default=None, help=f"{text}  [default: no]")
    if said.kind.startswith(_MODEL):
        return ModelOption([f"--{dashed}"], metavar="MODEL", help=text)
    what = " | ".join(re.findall(r'"([^"]+)"', said.kind) + re.findall(r"\b(int|float|true)\b", said.kind))
    default = f"  [default: {said.default.strip(chr(34))}]" if said.default not in ("", "None") else ""
    return ModelOption(
        [f"--{dashed}", *_SHORT.get(name, ()), name],
        type=Value(),
        metavar=what.upper() if what in ("int", "float") else what or "NAME",
        help=text + default,
    )


def _plain(text: str) -> str:
    """The first sentences of a docstring's paragraph, without its marks."""
    text = re.sub(r":\w+:`([^`]+)`", r"\1", " ".join(text.split()))
    text = re.sub(r" ?\[\d\]_", "", text.replace("``", ""))
    sentences = re.split(r'(?<=\.) (?=[A-Z"])', text)
    while len(sentences) > 1 and len(" ".join(sentences)) > _LENGTH:
        sentences.pop()
    return " ".join(sentences)


class ModelCommand(click.Command):
    """A command whose options are its own and the parameters of estimators, which are read when they are needed."""

    def __init__(self, *args: Any, models: tuple[str, ...], only: tuple[str, ...] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.models, self.only = models, only  # only some of their parameters, if there are names

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own options, then those of the estimators."""
        return [*self._of_models(), *super().get_params(ctx)]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Its own options first, those of the estimators under a heading."""
        first = [param for param in self._of_models() if param.name in _SHORT]  # what most people look for
        mine = [*first, *(param for param in super().get_params(ctx) if isinstance(param, click.Option))]
        own = [param.get_help_record(ctx) for param in mine]
        theirs = [param.get_help_record(ctx) for param in self._of_models() if param not in first]
        for title, records in (("Options", own), (f"Parameters of {' and '.join(self.models)}", theirs)):
            with formatter.section(title):
                formatter.write_dl([record for record in records if record is not None])

    def _of_models(self) -> list[ModelOption]:
        if not hasattr(self, "_options"):
            options = model_options(self.models)
            self._options = [option for option in options if not self.only or option.name in self.only]
        return self._options


def given(ctx: click.Context) -> dict[str, Any]:
    """The parameters of estimators that the user has set."""
    names = [param.name for param in ctx.command.get_params(ctx) if isinstance(param, ModelOption) and param.name]
    return {name: ctx.params[name] for name in names if ctx.get_parameter_source(name) != ParameterSource.DEFAULT}
