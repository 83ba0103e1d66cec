"""Figures of a checkout, or of several side by side: how large it is, and how often it says a thing twice.

python tools/figures.py BEFORE AFTER     # folders that hold src/kfree
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from list_numbers import constants, records

ROOT = Path(__file__).resolve().parents[1]
LONG, MANY = 50, 6  # lines of a function, parameters

Function = ast.FunctionDef | ast.AsyncFunctionDef


class File(NamedTuple):
    """A module."""

    layer: str  # its first folder; of kernels the first two, as the twins have the same names
    path: Path  # relative to the folder of kfree
    text: str
    tree: ast.Module

    def nodes(self, *kinds: type) -> Iterator[ast.AST]:
        """All its nodes of some kinds."""
        return (node for node in ast.walk(self.tree) if isinstance(node, kinds))


def read(source: Path) -> list[File]:
    """All modules under a folder ``kfree``."""
    found = []
    for path in sorted(source.rglob("*.py")):
        inside, text = path.relative_to(source), path.read_text()
        folders = inside.parts[:-1]
        layer = "/".join(folders[:2] if folders[:1] == ("kernels",) else folders[:1])
        found.append(File(layer, inside, text, ast.parse(text)))
    return found


def functions(files: list[File]) -> Iterator[tuple[File, str, Function]]:
    """All functions with the class they are in."""
    for file in files:
        owner = {
            id(member): node.name for node in file.nodes(ast.ClassDef) for member in getattr(node, "body", ())
        }  # methods
        for node in file.nodes(ast.FunctionDef, ast.AsyncFunctionDef):
            yield file, owner.get(id(node), ""), node


def parameters(node: Function) -> int:
    """How many a caller may give."""
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return sum(a.arg not in ("self", "cls") for a in arguments)


def is_record(node: ast.ClassDef) -> bool:
    """A NamedTuple or a dataclass."""
    named = any(getattr(base, "id", getattr(base, "attr", "")) == "NamedTuple" for base in node.bases)
    return named or any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)


def record_names(files: list[File]) -> list[tuple[str, str]]:
    """Layer and name of each record."""
    return [(f.layer, n.name) for f in files for n in f.nodes(ast.ClassDef) if is_record(n)]


def module_names(files: list[File]) -> list[tuple[str, str]]:
    """Layer and name of each module that has one."""
    return [(f.layer, f.path.stem) for f in files if f.path.name != "__init__.py"]


def twice(names: list[tuple[str, str]]) -> list[str]:
    """Those that occur more than once in a layer."""
    return [f"{layer}: {name} x{count}" for (layer, name), count in sorted(Counter(names).items()) if count > 1]


def catches_interrupts(node: ast.ExceptHandler) -> bool:
    """``except KeyboardInterrupt``, alone or among others."""
    return node.type is not None and any(getattr(n, "id", "") == "KeyboardInterrupt" for n in ast.walk(node.type))


def raises_rise(node: ast.Raise) -> bool:
    """``raise ObjectiveRose``."""
    return node.exc is not None and any(getattr(n, "id", "") == "ObjectiveRose" for n in ast.walk(node.exc))


def is_pass_loop(node: "ast.While | ast.For") -> bool:
    """A loop that asks whether the budget is spent, and is not one over given items."""
    counted = isinstance(node, ast.While) or ast.unparse(node.iter).startswith(("range(", "count("))
    return counted and any(isinstance(n, ast.Attribute) and n.attr == "spent" for n in ast.walk(node))


def loops_beside(files: list[File]) -> list[str]:
    """Where passes are repeated other than by ``loop``."""
    return [
        f"{file.path}:{node.lineno}"
        for file in files
        if file.layer == "inference" and file.path.name != "loop.py"
        for node in file.nodes(ast.While, ast.For)
        if is_pass_loop(node)
    ]


def figures(root: Path, lists: dict[str, list[str]]) -> dict[str, int]:
    """Name -> figure; what is counted goes to ``lists``."""
    source = root / "src" / "kfree"
    files = read(source)
    own = [(f, owner, n) for f, owner, n in functions(files)]
    outside = [(f, owner, n) for f, owner, n in own if not f.layer.startswith("kernels")]
    in_inference = [f for f in files if f.layer == "inference" and not f.path.name.endswith("_numbers.py")]
    numbers = [number for record in records(source) for number in record.numbers]
    lists |= {
        "functions over 50 lines": [f"{f.path}: {n.name}" for f, _, n in own if _lines(n) > LONG],
        "functions over 50 lines outside kernels": [f"{f.path}: {n.name}" for f, _, n in outside if _lines(n) > LONG],
        "functions over 6 parameters outside kernels and public constructors": [
            f"{f.path}: {n.name} ({parameters(n)})"
            for f, owner, n in outside
            if parameters(n) > MANY
            and not (n.name == "__init__" and f.layer == "estimators" and not owner.startswith("_"))
        ],
        "numeric constants of inference outside records": [
            f"{f.path}: {name}" for f in in_inference for name in constants(source / f.path)
        ],
        "record names used twice in a layer": twice(record_names(files)),
        "module names used twice in a layer": twice(module_names(files)),
        "except KeyboardInterrupt": _places(files, ast.ExceptHandler, catches_interrupts),
        "raise ObjectiveRose": _places(files, ast.Raise, raises_rise),
        "loops beside loop.py": loops_beside(files),
    }
    sizes = {
        "files": len(files),
        "lines": sum(len(f.text.splitlines()) for f in files),
        "functions": len(own),
        "files over 400 lines": sum(len(f.text.splitlines()) > 400 for f in files),
        "constants in records": len(numbers),
        "of these, only speed": sum(number.speed for number in numbers),
        "records (NamedTuple, dataclass)": len(record_names(files)),
    }
    return sizes | {name: len(found) for name, found in lists.items()}


def _lines(node: Function) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _places(files: list[File], kind: type, test) -> list[str]:
    return [f"{f.path}:{n.lineno}" for f in files for n in f.nodes(kind) if test(n)]


def main() -> None:
    """Print a table; with ``--list`` also what was counted in the last checkout."""
    roots = [Path(argument) for argument in sys.argv[1:] if argument != "--list"] or [ROOT]
    lists: dict[str, list[str]] = {}
    columns = [figures(root, lists) for root in roots]
    print("|  | " + " | ".join(root.resolve().name for root in roots) + " |")
    print("|---|" + "---|" * len(roots))
    for name in columns[0]:
        print(f"| {name} | " + " | ".join(f"{column[name]:,}" for column in columns) + " |")
    if "--list" in sys.argv:
        for name, found in lists.items():
            print(f"\n{name}\n" + "\n".join(f"  {place}" for place in found))


if __name__ == "__main__":
    main()
