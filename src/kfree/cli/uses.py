"""The commands that use what is there: a path over the number of clusters, models for new rows, reports, a look."""

import json
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from kfree.cli.files import Asked, File, check_names, find, names_of, read
from kfree.cli.fits import Order, load_rows, topic_labels
from kfree.cli.found import labels_of, noun_of, with_ids
from kfree.cli.outputs import Columns, check_free, new_file, new_folder, print_table, print_text, write_table
from kfree.cli.recipes import Kept, Recipe, read_kept
from kfree.cli.tables import Sentences, read_rows
from kfree.cli.talk import Problem, Talk, listed
from kfree.cli.texts import Documents, Words, read_documents

#: Columns that are told of one by one.
_SHOWN = 50


class New(NamedTuple):
    """Rows for a model that is there."""

    X: Any
    columns: Columns  # what each row belongs to, beside its id
    texts: Any  # of the rows of X, or None


def path(order: Order) -> int:
    """Clusters for every number of them."""
    from kfree import lam_path

    talk, out = order.talk, order.out
    if out is not None:
        check_free(Path(out), ["path.csv", "path.png"], order.force)
    rows, _ = load_rows(order)
    with talk.progress("looking at numbers of clusters"):
        seen = lam_path(rows.X, sample_weight=rows.weight, **order.parameters)
    names = ["clusters", "lam_from", "lam_to", "inertia", "score", "score_without_groups"]
    values = [seen.n_clusters, *seen.window.T, seen.inertia, seen.score, seen.score_without_groups]
    table = Columns(names, [["" if np.isnan(cell) else cell for cell in column.tolist()] for column in values])
    if out is None:
        print_table(table)
    else:
        with new_folder(Path(out)) as part:
            write_table(part / "path.csv", table)
            _draw(part / "path.png", seen)
        talk.note(f"Written to {out}: path.csv, path.png")
    talk.note(repr(seen))
    talk.note(f"Next: kfree cluster {shlex.quote(order.file)} --clusters {max(2, seen.best)}")
    return 0


def _draw(file: Path, seen: Any) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.4), layout="constrained")
    seen.plot(figure.add_subplot())
    figure.savefig(file, dpi=150)


def predict(model: str, order: Order) -> int:
    """Labels of new rows."""
    kept = read_kept(model)
    target = None if order.out in (None, "-") else Path(str(order.out))
    if target is not None:
        _check_target(target, (".csv", ".parquet"), order.force)
    new = _new(kept, order)
    if target is None:
        print_table(new.columns)
    else:
        with new_file(target) as part:
            write_table(part, new.columns)
        order.talk.note(f"Written to {target}: a {noun_of(kept.model)} for each of {len(new.columns.values[0])} rows.")
    return 0


def report(model: str, order: Order) -> int:
    """A page about a model."""
    import kfree

    kept, target, talk = read_kept(model), Path(str(order.out)), order.talk
    _check_target(target, (".html", ".htm"), order.force)
    new = _new(kept, order)
    with talk.progress("writing the report"):
        texts = new.texts if order.images is None else None  # pictures need no words beside them
        kfree.report(kept.model, new.X, target, texts, order.images, kept.preparer)
    talk.note(f"Written to {target}. Next: open it, and send it to somebody.")
    return 0


def _check_target(target: Path, ends: tuple[str, ...], force: bool) -> None:
    if target.suffix not in ends:
        raise Problem(f"--out is a file whose name ends in {' or '.join(ends)}, got {target}.")
    if target.exists() and not force:
        raise Problem(f"{target} is already there. Pass --force to replace it, or --out with another name.")
    if not target.absolute().parent.is_dir():
        raise Problem(f"There is no folder {target.absolute().parent} to write {target.name} into. Make it first.")


def _new(kept: Kept, order: Order) -> New:
    """New rows, read as those of the fit were."""
    model, recipe, file, asked, pick = kept.model, kept.recipe, order.file, order.asked, order.pick
    if noun_of(model) == "topic":
        return _new_documents(kept, order)
    if recipe is not None:
        pick = pick._replace(id=pick.id or _there(recipe.id, file, asked), group=pick.group or recipe.group)
    named = recipe.columns if recipe is not None else getattr(model, "feature_names_in_", ())
    if not pick.columns:
        pick = pick._replace(columns=tuple(named))
    source = find(file, asked.format, "csv")
    rows = read_rows(source, asked, pick)
    rows = rows.as_numbers(source) if kept.preparer is None else rows.prepared(kept.preparer)
    if len(rows.columns) != model.n_features_in_:
        raise Problem(f"The model was fitted to {model.n_features_in_} columns, but {file} has {len(rows.columns)}.")
    texts = None if rows.frame is None else Sentences(rows)
    return New(rows.X, with_ids(rows.ids, rows.id_name, labels_of(model, rows.X, rows.groups)), texts)


def _there(name: str | None, file: str, asked: Asked) -> str | None:
    """The id column of the fit, if the new file has it; stdin can be read once only, and must."""
    if name is None or file == "-":
        return name
    return name if name in names_of(read(find(file, asked.format, "csv"), asked)) else None


def _new_documents(kept: Kept, order: Order) -> New:
    recipe = kept.recipe or Recipe("topics", [])
    words = recipe.columns or None
    field = recipe.text or "text"
    pick = order.pick._replace(id=order.pick.id or recipe.id)
    _, documents = read_documents(order.file, order.asked, pick, field, Words(), order.talk, words)
    _check_words(kept.model, documents, order.file)
    filled = documents.filled
    texts = None if documents.texts is None else [documents.texts[i] for i in filled]
    return New(documents.counts[filled], topic_labels(kept.model, documents), texts)


def _check_words(model: Any, documents: Documents, file: str) -> None:
    V = documents.counts.shape[1]
    if model.n_features_in_ != V:
        raise Problem(
            f"The model knows {model.n_features_in_} words, but {file} has {V}. Pass the folder that kfree topics "
            "wrote: it knows which words they are."
        )


def info(name: str, asked: Asked, as_json: bool, talk: Talk) -> int:
    """What is in a file."""
    if name != "-" and (Path(name).is_dir() or Path(name).suffix == ".kfree"):
        told = _of_model(name)
        print_text(
            json.dumps(told, ensure_ascii=False) + "\n" if as_json else "".join(f"{k}: {v}\n" for k, v in told.items())
        )
        return 0
    file = find(name, asked.format, "csv")
    if file.format == "txt":
        with file.open() as stream:
            print_text(f"{name}: {len(stream.read().splitlines())} lines of text\n")
        talk.note(f"Next: kfree topics {shlex.quote(name)}")
        return 0
    data = read(file, asked)
    check_names(file, names_of(data))
    columns = _facts(data)
    if as_json:
        told = {"file": name, "format": file.format, "rows": data.shape[0], "columns": columns}
        print_text(json.dumps(told, ensure_ascii=False) + "\n")
        return 0
    print_text(_page(file, data, columns))
    unlike = [column["name"] for column in columns if column.get("values") == data.shape[0]]
    named = f" --id {shlex.quote(unlike[0])}" if unlike else ""
    talk.note(f"Next: kfree cluster {shlex.quote(name)}{named}")
    return 0


def _of_model(name: str) -> dict[str, Any]:
    """What is told of a model."""
    kept = read_kept(name)
    model = kept.model
    told: dict[str, Any] = {"model": repr(model), "found": model.explain()}
    if kept.recipe is not None:
        told["fitted by"] = f"kfree {kept.recipe.command}"
        told["columns"] = listed(kept.recipe.columns, _SHOWN)
    return told


def _facts(data: Any) -> list[dict[str, Any]]:
    """Each column: its type, missing values and range."""
    if isinstance(data, pa.Table):
        return [_of_column(name, data.column(name)) for name in names_of(data)]
    dense = data.tocsc() if sp.issparse(data) else data
    return [
        {
            "name": name,
            "type": "number",
            "missing": 0,
            "least": float(dense[:, [j]].min()),
            "most": float(dense[:, [j]].max()),
        }
        for j, name in enumerate(names_of(data)[:_SHOWN])
    ]


def _of_column(name: str, column: Any) -> dict[str, Any]:
    kind = column.type
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    told: dict[str, Any] = {
        "name": name,
        "type": "number" if number else "text" if pa.types.is_string(kind) else str(kind),
    }
    told["missing"] = column.null_count
    if number:
        ends = pc.min_max(column).as_py()
        return {**told, "least": ends["min"], "most": ends["max"]}
    return {**told, "values": len(pc.unique(column))}


def _page(file: File, data: Any, columns: list[dict[str, Any]]) -> str:
    """The facts as lines."""
    n, p = data.shape
    lines = [f"{file.name}: {file.format}, {n} rows, {p} columns"]
    width = max((len(column["name"]) for column in columns[:_SHOWN]), default=0)
    for column in columns[:_SHOWN]:
        missing = f", {column['missing']} missing" if column["missing"] else ""
        range_ = f"{column['least']} to {column['most']}" if "least" in column else f"{column['values']} values"
        lines.append(f"  {column['name']:<{width}}  {column['type']:<6}  {range_}{missing}")
    more = [f"  ... and {p - _SHOWN} more columns"] if p > _SHOWN else []
    return "\n".join([*lines, *more, ""])
