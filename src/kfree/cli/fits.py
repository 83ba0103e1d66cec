"""The commands that fit: read, fit, write, say what was found and what to do next."""

import json
import math
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import click

import kfree
from kfree.cli.files import Asked, find
from kfree.cli.found import Part, labels_of, named, parts_of, place_in_picture, with_ids
from kfree.cli.outputs import Columns, check_free, new_folder, print_table, print_text, write_table
from kfree.cli.recipes import MODEL, PREPARER, RECIPE, Kept, Recipe
from kfree.cli.tables import Pick, Rows, Sentences, check_enough, read_rows
from kfree.cli.talk import Problem, Talk, interrupts, one_line
from kfree.cli.texts import Documents, Words, read_documents

REPORT = "report.html"
#: Lines of a list that are shown.
_SHOWN = 20


class Order(NamedTuple):
    """What the user has ordered."""

    command: str  # cluster, topics, features, mixture
    file: str
    asked: Asked
    pick: Pick
    parameters: dict[str, Any]  # those of the estimator that were set
    talk: Talk
    out: str | None = None  # a folder, "-" for stdout, None for one named after the file
    tables: str = "csv"  # or parquet
    page: bool = True  # whether there is to be a report
    json: bool = False
    force: bool = False
    images: tuple[int, ...] | None = None  # height and width, if rows are pictures
    kinds: tuple[tuple[str, str], ...] = ()  # columns, and what they are said to be
    step: int = 0  # 1 for finer, -1 for coarser
    as_is: bool = False  # whether columns of a frame are left as they are
    earlier: Kept | None = None  # the model whose clusters these are matched to; columns are prepared as for it
    text: str = "text"  # column of the texts
    words: Words = Words()

    @property
    def folder(self) -> Path | None:
        """Where to write; None for stdout."""
        if self.out == "-" or (self.out is None and self.file == "-"):
            return None
        stem = Path(self.file).absolute().name.split(".")[0] or "folder"
        return Path(self.out or f"{stem}-{self.parts}")

    @property
    def files(self) -> list[str]:
        """What may be in it afterwards."""
        return [REPORT, f"labels.{self.tables}", f"{self.parts}.{self.tables}", MODEL, PREPARER, RECIPE]

    @property
    def prepared(self) -> bool:
        """Whether columns of a frame are prepared: not if they must stay counts, or pixels, or as they are."""
        if self.as_is or self.images is not None:
            return False
        likeness = self.parameters.get("divergence") or self.parameters.get("family")
        return likeness in (None, "sqeuclidean", "gaussian", "diag", "spherical")

    @property
    def parts(self) -> str:
        """What is found, in the plural."""
        return {"cluster": "clusters", "mixture": "components"}.get(self.command, self.command)


class Loaded(NamedTuple):
    """What is fitted, whatever it was read from."""

    X: Any
    columns: Any  # names of the columns, or words
    labels: Callable[[Any], Columns]  # labels of all rows, from a model
    recipe: Recipe
    beside: dict[str, Any]  # groups and weights of the rows
    texts: Any = None  # what is shown of the rows of X; None for their entries
    preparer: Any = None  # None if columns are as they were


class Outcome(NamedTuple):
    """What a command has done."""

    model: Any
    found: Part
    files: list[str]  # that were written
    interrupted: bool


def fit(order: Order) -> int:
    """Run a command that fits, and say what it found; the exit code."""
    outcome = run(order)
    _say(order, outcome)
    if order.json:
        print_text(json.dumps(_summary(order, outcome), ensure_ascii=False) + "\n")
    return 130 if outcome.interrupted else 0


def run(order: Order) -> Outcome:
    """Read, fit, write."""
    model = _make(order)
    folder = order.folder
    if folder is not None:
        check_free(folder, order.files, order.force)
    elif order.json:
        raise click.UsageError("--json and labels cannot both go to stdout. Pass --out DIR.")
    with _place(folder) as part, interrupts() as seen:
        loaded = _load(order)
        with order.talk.progress(f"fitting {type(model).__name__}"):
            model = _fitted(order, model, loaded)
        if seen.came:
            order.talk.note("Interrupted: taking the best so far ...")
        with order.talk.progress("writing what was found"):
            found, labels = _parts(order, model, loaded), loaded.labels(model)
            if part is not None:
                _write(order, part, model, loaded, found, labels)
        files = [] if part is None else [name for name in order.files if (part / name).exists()]
        if part is None:
            print_table(labels)
    return Outcome(model, found, files, seen.came)


def _parts(order: Order, model: Any, loaded: Loaded) -> Part:
    found = parts_of(model, loaded.X, loaded.beside, loaded.columns, loaded.preparer, loaded.texts)
    if order.images is not None and order.command == "features":  # pixels have no names worth telling
        return named(found, [place_in_picture(part, order.images) for part in model.components_])
    return found


@contextmanager
def _place(folder: Path | None) -> Iterator[Path | None]:
    if folder is None:
        yield None
        return
    with new_folder(folder) as part:
        yield part


def _make(order: Order) -> Any:
    """The estimator, its parameters checked."""
    names = {"topics": ("HDPTopics", ""), "mixture": ("VariationalDPMixture", "")}
    names["cluster"] = ("DPMeans", "HDPMeans, with --group COLUMN")
    names["features"] = ("BPMeans", "KFeatures, with --features K")
    first, other = names[order.command]
    kind = first
    if order.pick.group is not None or "n_components" in order.parameters:
        kind, other = other.split(",")[0], f"{first}, without it"
    cls = getattr(kfree, kind)
    for name in order.parameters:
        if name not in cls._parameters:
            raise click.UsageError(f"--{name.replace('_', '-')} is no option of {kind}, but of {other}.")
    model = cls(**order.parameters)
    try:
        model._check_parameters()
    except (TypeError, ValueError) as error:
        raise click.UsageError(one_line(str(error))) from error
    return model


def _load(order: Order) -> Loaded:
    """What is to be fitted."""
    if order.command == "topics":
        return _load_documents(order)
    rows, preparer = load_rows(order)
    read_from = rows.columns if rows.frame is None else rows.frame.column_names
    recipe = Recipe(order.command, list(read_from), order.pick.id, order.pick.group)
    texts = None if rows.frame is None else Sentences(rows)
    return Loaded(rows.X, rows.columns, lambda model: _labels(model, rows), recipe, _beside(rows), texts, preparer)


def load_rows(order: Order) -> tuple[Rows, Any]:
    """The rows of a table, and the preparer of its columns if they were prepared."""
    file = find(order.file, order.asked.format, "csv")
    rows = read_rows(file, order.asked, order.pick)
    check_enough(file, rows.X if rows.frame is None else rows.frame)
    order.talk.note(f"{rows.n} rows, {len(rows.columns)} columns of {file.name}.")
    if order.images is not None and math.prod(order.images) != len(rows.columns):
        shape = "x".join(map(str, order.images))
        raise Problem(
            f"--images {shape} means {math.prod(order.images)} numbers in a row, but {file.name} has "
            f"{len(rows.columns)}. Colours need x3 after height and width."
        )
    if rows.frame is None or not order.prepared:
        return rows.as_numbers(file), None
    if order.earlier is not None and order.earlier.preparer is not None:
        return rows.prepared(order.earlier.preparer), order.earlier.preparer
    preparer = kfree.TablePreparer(kinds=dict(order.kinds) or None).fit(rows.frame)
    lines = preparer.explain().splitlines()
    order.talk.note("\n  ".join(lines[:_SHOWN]) + (f"\n  ... and {len(lines) - _SHOWN} more" * (len(lines) > _SHOWN)))
    return rows.prepared(preparer), preparer


def _beside(rows: Rows) -> dict[str, Any]:
    """What a fit is given beside the rows."""
    given = {"groups": rows.groups, "sample_weight": rows.weight}
    return {name: value for name, value in given.items() if value is not None}


def _labels(model: Any, rows: Rows) -> Columns:
    return with_ids(rows.ids, rows.id_name, labels_of(model, rows.X, rows.groups))


def _load_documents(order: Order) -> Loaded:
    file, documents = read_documents(order.file, order.asked, order.pick, order.text, order.words, order.talk)
    filled = documents.filled
    X = documents.counts[filled]
    check_enough(file, X)
    if len(filled) < len(documents.ids):
        order.talk.warn(f"{len(documents.ids) - len(filled)} documents have no words that count; their topic is -1.")
    weight = None if documents.weight is None else documents.weight[filled]
    texts = None if documents.texts is None else [documents.texts[i] for i in filled]
    read_as = order.text if file.format not in ("txt", "folder") else ""
    recipe = Recipe("topics", list(map(str, documents.vocabulary)), order.pick.id, None, read_as)
    beside = {} if weight is None else {"sample_weight": weight}
    return Loaded(X, documents.vocabulary, lambda model: topic_labels(model, documents), recipe, beside, texts)


def topic_labels(model: Any, documents: Documents) -> Columns:
    """The main topic of each document; -1 for those without words."""
    filled = documents.filled
    told = labels_of(model, documents.counts[filled])
    topic, share = [-1] * len(documents.ids), [0.0] * len(documents.ids)
    for place, own, part in zip(filled, *told.values):
        topic[place], share[place] = own, part
    return with_ids(documents.ids, documents.id_name, Columns(told.names, [topic, share]))


def _fitted(order: Order, model: Any, loaded: Loaded) -> Any:
    """The model that was asked for."""
    model.fit(loaded.X, **loaded.beside)
    if order.step:
        model = _next(order, model, loaded)
    if order.command == "topics":
        model.name_topics(loaded.columns)
    return model


def _next(order: Order, model: Any, loaded: Loaded) -> Any:
    """The model with more, or fewer, clusters or topics."""
    if order.command == "topics":  # twice the price gives about half as many
        return model.set_params(lam_global=model.lam_global_ * 0.5**order.step).fit(loaded.X, **loaded.beside)
    K, choice = model.n_clusters_, getattr(model, "choice_", None)
    further = [] if choice is None else [k for k in choice.suggestions if (k - K) * order.step > 0]
    if not further:
        way = "more" if order.step > 0 else "fewer"
        raise Problem(f"{K} were found, and no number of {way} clusters suggests itself. Pass --clusters K to set it.")
    return model.set_params(n_clusters=further[0]).fit(loaded.X, **loaded.beside)


def _write(order: Order, folder: Path, model: Any, loaded: Loaded, found: Part, labels: Columns) -> None:
    write_table(folder / f"labels.{order.tables}", labels)
    write_table(folder / f"{order.parts}.{order.tables}", found.table)
    model.save(folder / MODEL)
    loaded.recipe.write(folder)
    if loaded.preparer is not None:
        loaded.preparer.save(folder / PREPARER)
    if order.page:
        from kfree import report

        texts = loaded.texts if order.images is None else None  # pictures need no words beside them
        report(model, loaded.X, folder / REPORT, texts, order.images, loaded.preparer)


def _say(order: Order, outcome: Outcome) -> None:
    """What was found, where it is, and what to do next."""
    talk, folder, (model, found, files, interrupted) = order.talk, order.folder, outcome
    talk.note("")
    talk.note(model.explain())
    lines = zip(range(_SHOWN), found.size, found.share, found.words)
    talk.table(
        [found.noun, "size", "share", "name"], [(k, size, f"{share:.0%}", words) for k, size, share, words in lines]
    )
    if len(found.words) > _SHOWN:
        talk.note(f"... and {len(found.words) - _SHOWN} more")
    if interrupted:
        talk.note("Interrupted: this is the best so far, not the end.")
    if folder is None:
        return
    talk.note(f"\nWritten to {folder}: {', '.join(files)}")
    after = f"kfree predict {shlex.quote(str(folder))} NEWFILE"
    talk.note(f"Next: {f'open {folder / REPORT}, or ' if order.page else ''}{after}")


def _summary(order: Order, outcome: Outcome) -> dict[str, Any]:
    """What --json prints."""
    model, found, files, interrupted = outcome
    return {
        "command": order.command,
        "file": order.file,
        "model": type(model).__name__,
        f"n_{order.parts}": len(found.words),
        "names": found.words,
        "sizes": found.size,
        "explain": model.explain(),
        "converged": bool(model.converged_),
        "interrupted": interrupted,
        "files": [str((order.folder or Path()) / name) for name in files],
    }
