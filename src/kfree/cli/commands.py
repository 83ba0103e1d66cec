"""The commands and their options. Whatever takes time to import is imported when a command runs."""

import codecs
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

import click

from kfree import __version__
from kfree.cli.options import ModelCommand, given
from kfree.cli.talk import Problem, Talk, listed, one_line

_FORMATS = ("csv", "tsv", "parquet", "json", "arrow", "npy", "npz", "mtx", "txt")
#: What TablePreparer may be told that a column is; it says the same, but takes time to import.
_COLUMN_KINDS = ("number", "category", "date", "leave out")
#: What shells expect of a command that Ctrl-C has ended.
_INTERRUPTED = 130


def run(args: list[str]) -> int:
    """Run a command; the exit code. Errors become one line on stderr, with ``--debug`` the traceback above it."""
    try:
        return int(commands.main(args=args, prog_name="kfree", standalone_mode=False) or 0)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "kfree"
        return _fail(2, f"{one_line(error.format_message())} (see {command} --help)")
    except (KeyboardInterrupt, click.Abort):
        return _fail(_INTERRUPTED, "Interrupted before there was a result. Nothing of it was written.")
    except (Problem, click.ClickException) as error:
        return _fail(1, str(error), "--debug" in args)
    except MemoryError as error:
        return _fail(1, f"There is not enough memory: {error}. Pass fewer rows or columns.", "--debug" in args)
    except (ValueError, TypeError, OSError, ImportError) as error:
        return _fail(1, str(error) or type(error).__name__, "--debug" in args)
    except Exception as error:
        said = f"{type(error).__name__}: {error}. This should not happen: run it with --debug and report it."
        return _fail(1, said, "--debug" in args)


def _fail(code: int, text: str, debug: bool = False) -> int:
    if debug:
        traceback.print_exc()
    try:
        click.echo(f"kfree: {one_line(text)}", err=True)
    except OSError:  # stderr is closed, too: there is nobody to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    return code


def _together(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Several options as one decorator, in the order in which they are to be shown."""

    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def _names(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """Names that were parted by commas."""
    return tuple(dict.fromkeys(name.strip() for text in value for name in text.split(",") if name.strip()))


def _kinds(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """What columns are said to be."""
    pairs = [text.rpartition("=") for text in value]
    if not all(mark for _, mark, _ in pairs):
        raise click.BadParameter("pass COLUMN=KIND, such as region=category.", ctx, param)
    for _, _, kind in pairs:
        if kind.strip() not in _COLUMN_KINDS:
            raise click.BadParameter(f"{kind!r} is no kind of column. Pass {listed(_COLUMN_KINDS)}.", ctx, param)
    return tuple((name, kind.strip()) for name, _, kind in pairs)


def _encoding(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """A way to write letters that Python knows."""
    try:
        codecs.lookup(value)
    except LookupError:
        raise click.BadParameter(f"{value!r} is not known. Pass utf8, latin1, utf16, cp1252, ...", ctx, param) from None
    return value


def _shape(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """Height, width and, if there are colours, 3."""
    if value is None:
        return None
    parts = value.lower().split("x")
    if len(parts) not in (2, 3) or not all(part.isdigit() for part in parts):
        raise click.BadParameter("pass HEIGHTxWIDTH, such as 28x28; x3 after it for colours.", ctx, param)
    return tuple(map(int, parts))


_READING = _together(
    click.option("--format", type=click.Choice(_FORMATS), help="How the file is written; else told by its name."),
    click.option(
        "--encoding",
        default="utf8",
        show_default=True,
        callback=_encoding,
        metavar="NAME",
        help="How letters are written in a text file.",
    ),
    click.option("--array", metavar="NAME", help="Which array of a .npz file."),
)
_COLUMNS = _together(
    click.option("--columns", multiple=True, callback=_names, metavar="A,B,...", help="Columns to use; else all."),
    click.option("--drop", multiple=True, callback=_names, metavar="A,B,...", help="Columns to leave out."),
    click.option("--id", metavar="COLUMN", help="Names of the rows; else they are counted from 0."),
)
_AS_IS = click.option("--as-is", is_flag=True, help="Leave the columns of a table as they are: numbers, not scaled.")
_KINDS = click.option(
    "--kind",
    "kinds",
    multiple=True,
    callback=_kinds,
    metavar="COLUMN=KIND",
    help="What a column is, if its values do not tell: number, category, date or leave out.",
)
_IMAGES = click.option("--images", callback=_shape, metavar="HxW", help="Rows are pictures: the report shows them.")
_WEIGHT = click.option("--weight", metavar="COLUMN", help="How much each row counts.")
_TALKING = _together(
    click.option("--quiet", "-q", is_flag=True, help="Say nothing but errors."),
    click.option("--debug", is_flag=True, help="Show the traceback of an error."),
)
_FORCE = click.option("--force", "-f", is_flag=True, help="Replace files that are there.")
_WRITING = _together(
    click.option("--out", "-o", metavar="DIR", help="Folder to write; - writes the labels to stdout and nothing else."),
    click.option(
        "--tables",
        type=click.Choice(["csv", "parquet"]),
        default="csv",
        show_default=True,
        help="How tables are written.",
    ),
    click.option("--report/--no-report", default=True, help="Whether to write report.html."),
    click.option("--json", is_flag=True, help="Print what was found to stdout, as JSON."),
    _FORCE,
)
_STEP = _together(
    click.option("--finer", "step", flag_value=1, type=int, help="The next larger number that suggests itself."),
    click.option("--coarser", "step", flag_value=-1, type=int, help="The next smaller one."),
)


class Commands(click.Group):
    """The commands in the order in which they are made, which is that of use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names."""
        return list(self.commands)


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
)
@click.version_option(__version__, message="kfree %(version)s")
@click.pass_context
def commands(ctx: click.Context) -> None:
    """Clusters, topics, mixtures and latent features of a file, without being told how many.

    Try "kfree demo", "kfree info FILE", "kfree cluster FILE". FILE may be CSV, TSV, Parquet, JSON lines, Arrow, NPY,
    NPZ, Matrix Market, or - for stdin; text for topics. Results go to a folder, what is said goes to stderr.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@click.command(cls=ModelCommand, models=("DPMeans", "HDPMeans"))
@click.argument("file")
@_COLUMNS
@click.option("--group", metavar="COLUMN", help="Groups of rows, such as shops, that share clusters (HDPMeans).")
@_WEIGHT
@_AS_IS
@_KINDS
@_IMAGES
@_STEP
@_WRITING
@_READING
@_TALKING
@click.pass_context
def cluster(ctx: click.Context, **options: Any) -> int:
    """Clusters of the rows of FILE, as many as there are."""
    return _fit(ctx)


@click.command(cls=ModelCommand, models=("HDPTopics",), short_help="Topics of the documents in FILE.")
@click.argument("file")
@click.option("--text", default="text", show_default=True, metavar="COLUMN", help="Where the texts of a table are.")
@click.option("--id", metavar="COLUMN", help="Names of the documents; else they are counted from 0.")
@_WEIGHT
@click.option("--min-df", type=click.IntRange(1), help="Documents a word must be in; else chosen, and told.")
@click.option(
    "--max-df", type=click.FloatRange(0, 1), help="Share of documents a word may be in; else chosen, and told."
)
@click.option(
    "--stop-words",
    type=click.Choice(["auto", "english", "none"]),
    default="auto",
    show_default=True,
    help="Words that say nothing; auto leaves the English ones out if the texts are English.",
)
@_STEP
@_WRITING
@_READING
@_TALKING
@click.pass_context
def topics(ctx: click.Context, **options: Any) -> int:
    """Topics of the documents in FILE: a document a line, a table with a column of texts, a folder, or counts."""
    return _fit(ctx)


@click.command(cls=ModelCommand, models=("BPMeans", "KFeatures"), short_help="Latent features of the rows of FILE.")
@click.argument("file")
@_COLUMNS
@_WEIGHT
@_AS_IS
@_KINDS
@_IMAGES
@_WRITING
@_READING
@_TALKING
@click.pass_context
def features(ctx: click.Context, **options: Any) -> int:
    """Latent features of the rows of FILE, of which a row may have none, one or many."""
    return _fit(ctx)


@click.command(cls=ModelCommand, models=("VariationalDPMixture",))
@click.argument("file")
@_COLUMNS
@_WEIGHT
@_AS_IS
@_KINDS
@_IMAGES
@_WRITING
@_READING
@_TALKING
@click.pass_context
def mixture(ctx: click.Context, **options: Any) -> int:
    """A mixture density of the rows of FILE: soft clusters."""
    return _fit(ctx)


def _fit(ctx: click.Context) -> int:
    from kfree.cli.fits import fit
    from kfree.cli.texts import Words

    order, options = _order(ctx), ctx.params
    if "text" in options:
        words = Words(options["min_df"], options["max_df"], options["stop_words"])
        order = order._replace(text=options["text"], words=words)
    return fit(order)


def _order(ctx: click.Context) -> Any:
    """What the options say."""
    from kfree.cli.fits import Order
    from kfree.cli.recipes import read_kept

    options, talk = ctx.params, Talk(ctx.params["quiet"])
    named = ("out", "tables", "json", "force", "as_is", "images", "kinds")
    order = Order(str(ctx.command.name), options["file"], _asked(options), _pick(options), given(ctx), talk)
    order = order._replace(**{name: options[name] for name in named if name in options})
    if "match_to" in order.parameters:
        earlier = read_kept(order.parameters["match_to"])
        order = order._replace(earlier=earlier, parameters={**order.parameters, "match_to": earlier.model})
    return order._replace(page=options.get("report", True), step=int(options.get("step") or 0))


def _asked(options: dict[str, Any]) -> Any:
    from kfree.cli.files import Asked

    return Asked(options["format"], options["array"], options["encoding"])


def _pick(options: dict[str, Any]) -> Any:
    from kfree.cli.tables import Pick

    return Pick(**{name: options[name] for name in Pick._fields if name in options})


@click.command(
    cls=ModelCommand,
    models=("DPMeans",),
    only=("divergence", "weighting", "smoothing"),
    short_help="How clear 1, 2, 3, ... clusters of FILE are.",
)
@click.argument("file")
@click.option("--max-clusters", type=click.IntRange(1), default=20, show_default=True, help="How far to go.")
@click.option("--out", "-o", metavar="DIR", help="Folder for the table and a picture; else the table goes to stdout.")
@_COLUMNS
@_WEIGHT
@_AS_IS
@_KINDS
@_FORCE
@_READING
@_TALKING
@click.pass_context
def path(ctx: click.Context, **options: Any) -> int:
    """For 1, 2, 3, ... clusters: how clear they are, and what a cluster may cost."""
    from kfree.cli import uses

    order = _order(ctx)
    return uses.path(order._replace(parameters={**order.parameters, "max_clusters": options["max_clusters"]}))


_MODEL_AND_FILE = _together(click.argument("model"), click.argument("file"), _COLUMNS)


@click.command(short_help="Labels of the rows of FILE by MODEL.")
@_MODEL_AND_FILE
@click.option("--group", metavar="COLUMN", help="Groups of rows, if the model knows groups.")
@click.option("--out", "-o", metavar="FILE", help="A .csv or .parquet file; else stdout.")
@_FORCE
@_READING
@_TALKING
@click.pass_context
def predict(ctx: click.Context, **options: Any) -> int:
    """Labels of the rows of FILE by MODEL, a folder that a command wrote or a saved model."""
    from kfree.cli import uses

    return uses.predict(options["model"], _order(ctx))


@click.command()
@_MODEL_AND_FILE
@click.option("--out", "-o", metavar="FILE", default="report.html", show_default=True, help="The page to write.")
@_IMAGES
@_FORCE
@_READING
@_TALKING
@click.pass_context
def report(ctx: click.Context, **options: Any) -> int:
    """A page about MODEL and the rows of FILE that it was fitted to."""
    from kfree.cli import uses

    return uses.report(options["model"], _order(ctx))


@click.command(short_help="What is in FILE, or what MODEL is.")
@click.argument("file")
@click.option("--json", is_flag=True, help="As JSON.")
@_READING
@_TALKING
def info(**options: Any) -> int:
    """What is in FILE: columns, types, ranges, missing values; or what a saved model is."""
    from kfree.cli import uses

    return uses.info(options["file"], _asked(options), options["json"], Talk(options["quiet"]))


@click.command(short_help="Three small files, and what is found in them.")
@click.option("--out", "-o", metavar="DIR", default="demo", show_default=True, help="Folder to write.")
@click.option("--report/--no-report", default=True, help="Whether to write pages.")
@_FORCE
@_TALKING
def demo(**options: Any) -> int:
    """Customers, texts and pictures: three small files, and what is found in them."""
    from kfree.cli.demo import show

    return show(options["out"], options["report"], options["force"], Talk(options["quiet"]))


for _command in (cluster, topics, features, mixture, path, predict, report, info, demo):
    commands.add_command(_command)
