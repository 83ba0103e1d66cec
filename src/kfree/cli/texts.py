"""Documents, and the counts of words that topics are found in; every choice on the way is told."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from kfree.cli.files import Asked, File, check_names, find, other_letters, read
from kfree.cli.tables import ROW, Pick, Rows, check_columns, check_weights, read_rows
from kfree.cli.talk import Problem, Talk, listed

#: Fewer documents than this are too few to leave words out for being in few or many of them.
_FEW = 20
#: From so many documents on a word must be in more of them.
_MANY = 1000
#: Texts whose words are such, to this share, are English.
_ENGLISH = 0.2


class Words(NamedTuple):
    """Which words count."""

    min_df: int | None = None  # documents a word must be in; chosen if None
    max_df: float | None = None  # share of documents that it may be in; chosen if None
    stop_words: str = "auto"  # "english", "none", or "auto": English ones if the texts are


class Documents(NamedTuple):
    """What topics are found in, and what is known of each document."""

    counts: Any  # (D, V) CSR matrix; documents without words are in it
    vocabulary: Any  # (V,) words
    texts: list[str] | None  # (D,) None if there are only counts
    ids: list[Any]  # (D,)
    id_name: str
    weight: Any  # (D,) or None

    @property
    def filled(self) -> Any:
        """Documents that have words."""
        return np.flatnonzero(np.asarray(self.counts.sum(axis=1)).ravel() > 0)


def read_documents(
    name: str, asked: Asked, pick: Pick, field: str, words: Words, talk: Talk, vocabulary: Sequence[str] | None = None
) -> tuple[File, Documents]:
    """The documents of a file or folder; with a vocabulary only the words in it count."""
    if name != "-" and Path(name).is_dir():
        file = File(name, Path(name), "folder")
        return file, _counted(*_folder(Path(name)), None, "document", words, talk, vocabulary)
    file = find(name, asked.format, "txt")
    if file.format == "txt":
        texts = _lines(file, asked.encoding)
        return file, _counted(texts, list(range(len(texts))), None, ROW, words, talk, vocabulary)
    if file.format in ("npy", "npz", "mtx"):
        return file, _matrix(file, read_rows(file, asked, pick))
    texts, ids, weight = _field(file, asked, pick, field)
    return file, _counted(texts, ids, weight, pick.id or ROW, words, talk, vocabulary)


def _lines(file: File, encoding: str) -> list[str]:
    """A document a line, empty ones too: their numbers are ids."""
    with file.open() as stream:
        lines = _decoded(file.name, stream.read(), encoding).splitlines()
    if not any(line.strip() for line in lines):
        raise Problem(f"{file.name} is empty. Pass a file with a document a line.")
    return lines


def _folder(folder: Path) -> tuple[list[str], list[str]]:
    """A document a file, called after it."""
    paths = sorted(path for path in folder.rglob("*.txt") if path.is_file())
    if not paths:
        raise Problem(f"There are no .txt files in {folder}. Pass a folder with a document a file.")
    return [_decoded(str(path), path.read_bytes(), "utf8") for path in paths], [
        path.relative_to(folder).as_posix() for path in paths
    ]


def _decoded(name: str, content: bytes, encoding: str) -> str:
    try:
        return content.decode(encoding).lstrip("\ufeff")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise other_letters(name, encoding, f" (line {line})") from None


def _field(file: File, asked: Asked, pick: Pick, field: str) -> tuple[list[str], list[Any], Any]:
    """The texts in a column, with the ids and weights beside them."""
    data = read(file, asked._replace(as_text=tuple(name for name in (field, pick.id) if name is not None)))
    check_names(file, data.column_names)
    if field not in data.column_names:
        raise Problem(
            f"{file.name} has no column {field!r}. Say where the texts are: --text, one of {listed(data.column_names)}."
        )
    check_columns(file, data.column_names, pick.apart)
    if data.num_rows == 0:
        raise Problem(f"{file.name} has no rows. Pass one with a text in each.")
    kind = data.schema.field(field).type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise Problem(f"Column {field!r} of {file.name} holds no text. Say where the texts are: --text COLUMN.")
    texts = ["" if text is None else text for text in data.column(field).to_pylist()]
    ids = list(range(len(texts))) if pick.id is None else data.column(pick.id).to_pylist()
    weight = None if pick.weight is None else check_weights(file, pick.weight, data.column(pick.weight).to_pylist())
    return texts, ids, weight


def _matrix(file: File, rows: Rows) -> Documents:
    """Counts as they are; a .npz may bring its words along."""
    vocabulary = np.array([f"word {name}" for name in rows.columns])
    if file.format == "npz":
        with np.load(file.whole(), allow_pickle=False) as arrays:
            known = [name for name in ("vocabulary", "vocab") if name in arrays.files]
            if known and arrays[known[0]].shape == vocabulary.shape:
                vocabulary = arrays[known[0]].astype(str)
    return Documents(sp.csr_matrix(rows.X), vocabulary, None, rows.ids, rows.id_name, rows.weight)


def _counted(
    texts: list[str],
    ids: list[Any],
    weight: Any,
    id_name: str,
    words: Words,
    talk: Talk,
    vocabulary: Sequence[str] | None,
) -> Documents:
    """How often each word is in each text."""
    from sklearn.feature_extraction.text import CountVectorizer

    if vocabulary is not None:
        counter = CountVectorizer(vocabulary=vocabulary)
        return Documents(counter.transform(texts), np.array(vocabulary), texts, ids, id_name, weight)
    n = sum(map(bool, texts))
    least = words.min_df or (1 if n < _FEW else 2 if n < _MANY else 5)
    most = words.max_df or (1.0 if n < _FEW else 0.5)
    stops, why = _stop_words(texts, words.stop_words)
    try:
        counter = CountVectorizer(min_df=least, max_df=most, stop_words=stops)
        counts = counter.fit_transform(texts)
    except ValueError as error:
        raise Problem(
            f"No word is left of these {len(texts)} documents: {error} Pass --min-df 1 --max-df 1.0 --stop-words none."
        ) from error
    vocabulary = counter.get_feature_names_out()
    talk.note(
        f"{len(texts)} documents, {len(vocabulary)} words: those in at least {least} document{'s' * (least > 1)} and "
        f"at most {most:.0%} of them; {why}."
    )
    return Documents(sp.csr_matrix(counts, dtype=np.float64), vocabulary, texts, ids, id_name, weight)


def _stop_words(texts: list[str], wish: str) -> tuple[str | None, str]:
    """The words to leave out, and why."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    if wish != "auto":
        return ("english", "English stop words left out") if wish == "english" else (None, "no stop words left out")
    some = [word for text in texts[:_MANY] for word in text.lower().split()]
    share = sum(word in ENGLISH_STOP_WORDS for word in some) / max(1, len(some))
    if share >= _ENGLISH:
        return "english", f"English stop words left out ({share:.0%} of all words)"
    return None, "no stop words left out (few words are English stop words)"
