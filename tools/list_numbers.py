"""The constants of all methods, written into ``docs/theory/inside.md``.

    python tools/list_numbers.py            # writes the tables
    python tools/list_numbers.py --check    # says whether they are up to date, and whether every number is explained

Constants are fields of a NamedTuple in a file ``*_numbers.py``. The comment above a field says what it is and where it
was set: ``#: (speed) Rows read at a time. Set: benchmarks passes.``; "(speed)" if it changes nothing that is found.
"""

import ast
import re
import sys
from pathlib import Path
from typing import NamedTuple

import pages

ROOT = Path(__file__).resolve().parents[1]
HEADER = "| name | value | what it is | set by | only speed |\n|---|---|---|---|---|\n"
SPEED = "(speed) "


class Number(NamedTuple):
    """A field of a record of constants."""

    name: str
    value: str  # as it is written
    what: str
    where: str  # it was set; empty if nobody says
    speed: bool  # changes how long a fit takes, and nothing that is found


class Record(NamedTuple):
    """The constants of one method."""

    name: str
    file: str  # relative to the folder of kfree
    numbers: list[Number]

    @property
    def problems(self) -> list[str]:
        """Fields that do not say what they are or where they were set."""
        where = {f"{self.file}: {self.name}.{number.name}": number for number in self.numbers}
        silent = [f"{field} has no comment '#: what it is. Set: where.'" for field, n in where.items() if not n.what]
        unset = [f"{field} does not say 'Set: where.'" for field, n in where.items() if n.what and not n.where]
        return silent + unset


def records(source: Path) -> list[Record]:
    """All records of constants under a folder ``kfree``."""
    return [record for path in sorted(source.rglob("*_numbers.py")) for record in _records_of(path, source)]


def _records_of(path: Path, source: Path) -> list[Record]:
    text = path.read_text()
    lines = text.splitlines()
    found = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef) and any(getattr(base, "id", "") == "NamedTuple" for base in node.bases):
            fields = [field for field in node.body if isinstance(field, ast.AnnAssign)]
            numbers = [_number(field, text, lines) for field in fields]
            found.append(Record(node.name, path.relative_to(source).as_posix(), numbers))
    return found


def _number(field: ast.AnnAssign, text: str, lines: list[str]) -> Number:
    first = field.lineno - 1
    while first and lines[first - 1].lstrip().startswith("#:"):
        first -= 1
    comment = " ".join(line.lstrip().removeprefix("#:").strip() for line in lines[first : field.lineno - 1])
    what, _, where = comment.partition("Set:")
    value = "" if field.value is None else ast.get_source_segment(text, field.value) or ""
    return Number(
        ast.unparse(field.target),
        re.sub(r"\s+", " ", value),
        what.strip().removeprefix(SPEED),
        where.strip().removesuffix("."),
        what.startswith(SPEED),
    )


def is_number(value: ast.expr | None) -> bool:
    """A number, or an expression or tuple of numbers."""
    if isinstance(value, ast.Constant):
        return isinstance(value.value, int | float) and not isinstance(value.value, bool)
    if isinstance(value, ast.UnaryOp):
        return is_number(value.operand)
    if isinstance(value, ast.BinOp):
        return is_number(value.left) or is_number(value.right)
    if isinstance(value, ast.Tuple | ast.List):
        return bool(value.elts) and all(is_number(element) for element in value.elts)
    if isinstance(value, ast.Call):  # np.sqrt(2), np.array([1, 2]), float("inf")
        return bool(value.args) and all(is_number(a) or _spelled(a) for a in value.args)
    return False


def _spelled(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value in ("inf", "-inf", "nan")


def constants(path: Path) -> list[str]:
    """Names in capitals to which a module assigns numbers."""
    found = []
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]
            found += [name for name in names if name == name.upper() and is_number(node.value)]
    return found


def strays(source: Path) -> dict[str, list[str]]:
    """Constants of modules of inference that are not in a record, by file."""
    found = {
        path.relative_to(source).as_posix(): constants(path) for path in sorted((source / "inference").rglob("*.py"))
    }
    return {file: names for file, names in found.items() if names}


def tables(source: Path) -> str:
    """What the page says between its marks."""
    every = records(source)
    count, fast = sum(len(r.numbers) for r in every), sum(n.speed for r in every for n in r.numbers)
    text = f"Constants: {count}. Of these, {fast} change only how long a fit takes. Records: {len(every)}.\n"
    for record in every:
        text += f"\n### {record.name}\n\n`{record.file}`\n\n{HEADER}"
        for n in record.numbers:
            cells = [f"`{n.name}`", f"`{n.value}`", n.what, n.where, "yes" if n.speed else ""]
            text += "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
    return text


def filled(page: str, text: str) -> str:
    """The page with the tables between its marks."""
    return pages.filled(page, "numbers", text)


def problems(root: Path) -> list[str]:
    """What is wrong with page and records."""
    page, source = root / "docs" / "theory" / "inside.md", root / "src" / "kfree"
    found = [problem for record in records(source) for problem in record.problems]
    if page.read_text() != filled(page.read_text(), tables(source)):
        found.append("docs/theory/inside.md is not up to date: run python tools/list_numbers.py.")
    return found


def main() -> int:
    """Write the page, or check it; then tell of constants that are in no record."""
    page, source = ROOT / "docs" / "theory" / "inside.md", ROOT / "src" / "kfree"
    if "--check" not in sys.argv:
        page.write_text(filled(page.read_text(), tables(source)))
    found = problems(ROOT)
    print("\n".join(found) or "Every number is explained, and the page is up to date.")
    loose = strays(source)
    print(f"{sum(map(len, loose.values()))} constants of inference in no record:")
    print("\n".join(f"  {len(names):3d}  {file}: {', '.join(names)}" for file, names in loose.items()))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
