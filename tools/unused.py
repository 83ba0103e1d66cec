"""Names under ``src/kfree`` that nobody uses, and modules that nobody imports.

    python tools/unused.py          # lists them; ends with 1 if there are any
    python tools/unused.py PATH     # of another checkout

What is alive: what runs when a module is imported, the public names with all that is public in their classes, and
whatever these mention. A method, field or attribute of a living class is alive if living code reads an attribute of its
name, of whatever object: types are not looked at. A kernel is alive if living code asks ``kernels()`` for it, by
attribute or by name, or another uses it. What a template of a page reads is alive, too. Names that only tests use are
dead.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]

#: What is used in ways that cannot be seen here: a name with its class or without, and why.
ALLOWED = {
    "_n_features_out": "scikit-learn reads it",
    "Order.INDEX": "users name it by its value",
    "cluster": "users call it, as kfree.anndata.cluster",
    "SoftPass.free_energy": "published as a column of soft_trace_",
    "Restart.seconds": "published in restarts_",
    "_get_fitted_attr_html": "scikit-learn calls it",
    "_repr_html_inner": "scikit-learn calls it",
    "_repr_mimebundle_": "notebooks call it",
    "Commands.list_commands": "click calls it",
    "ModelCommand.format_options": "click calls it",
    "Value.convert": "click calls it",
}

#: Layers with names that users call.
_OPEN = ("displays", "estimators", "families", "files", "reports", "versions")

Function = ast.FunctionDef | ast.AsyncFunctionDef
Key = tuple[str, str]  # module, qualified name in it; "" is the code that runs on import


class Definition(NamedTuple):
    """A name somebody made."""

    module: str  # dotted, without "kfree."
    name: str  # qualified by the class
    kind: str  # function, method, class, field, attribute, constant, module
    line: int


class Use(NamedTuple):
    """A mention of a name."""

    by: Key  # the innermost definition it stands in
    of: Key | None  # what it means, None for an attribute of some object
    attribute: str  # name of the attribute


class Module:
    """What a file defines, imports and mentions."""

    def __init__(self, name: str, tree: ast.Module, modules: dict[str, bool]):
        self.name, self.modules = name, modules
        self.is_package = modules[name]
        self.definitions: dict[str, Definition] = {}
        self.bases: dict[str, list[ast.expr]] = {}
        self.uses: list[Use] = []
        self.imports: set[str] = set()
        self.strings = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
        self.bound: dict[str, Key | None] = {}  # module-level names: what they mean, None if another package's
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                self.imports.update(key_module for key_module, _ in self._imported(node).values() if key_module)
        self._define(tree.body, "")
        for node in tree.body:
            self._visit(node, "", [])

    def _define(self, body: Iterable[ast.stmt], owner: str) -> None:
        """Names made by a module or the body of a class."""
        for node in body:
            if isinstance(node, Function | ast.ClassDef):
                kind = "class" if isinstance(node, ast.ClassDef) else "method" if owner else "function"
                self._add(owner + node.name, kind, node.lineno)
                if isinstance(node, ast.ClassDef):
                    self.bases[node.name] = node.bases
                    self._define(node.body, f"{node.name}.")
                    self._define_attributes(node)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for name in (n for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)):
                    self._add(owner + name.id, "field" if owner else "constant", node.lineno)
            elif isinstance(node, ast.Import | ast.ImportFrom) and not owner:
                self.bound.update({name: key if key[0] else None for name, key in self._imported(node).items()})
            elif isinstance(node, ast.If | ast.Try | ast.With):
                self._define([n for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt)], owner)

    def _define_attributes(self, node: ast.ClassDef) -> None:
        """What methods set on ``self``."""
        stored = (n for n in ast.walk(node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
        for n in stored:
            if isinstance(n.value, ast.Name) and n.value.id == "self":
                self._add(f"{node.name}.{n.attr}", "attribute", n.lineno)

    def _add(self, name: str, kind: str, line: int) -> None:
        self.definitions.setdefault(name, Definition(self.name, name, kind, line))
        if "." not in name:
            self.bound[name] = (self.name, name)

    def _imported(self, node: ast.Import | ast.ImportFrom) -> dict[str, Key]:
        """Local name -> module and name in it ("" for the module itself; module "" if another package's)."""
        if isinstance(node, ast.Import):
            return {
                alias.asname or alias.name.split(".")[0]: (_ours(alias.name if alias.asname else ""), "")
                for alias in node.names
            }
        base = node.module or ""
        if node.level:
            package = ["kfree", *filter(None, self.name.split("."))]
            package = package[: len(package) - node.level + self.is_package]
            base = ".".join([*package, *filter(None, [node.module])])
        found = {}
        for alias in node.names:
            whole = _ours(f"{base}.{alias.name}")
            key = (whole, "") if whole in self.modules else (_ours(base), alias.name)
            found[alias.asname or alias.name] = key
        return found

    def _visit(self, node: ast.AST, by: str, scopes: list[dict[str, Key | None]]) -> None:
        """Collect mentions; ``by`` is the definition the node stands in, ``scopes`` the local names around it."""
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            meaning = self._meaning(node.id, scopes)
            if meaning:
                self.uses.append(Use((self.name, by), meaning, ""))
        elif isinstance(node, ast.Attribute):
            self._visit_attribute(node, by, scopes)
        elif isinstance(node, ast.Call) and _called(node) in ("getattr", "hasattr", "attrgetter", "methodcaller"):
            self.uses.extend(
                Use((self.name, by), None, a.value)
                for a in node.args
                if isinstance(a, ast.Constant) and isinstance(a.value, str)
            )
        if isinstance(node, Function | ast.ClassDef) and not scopes and "." not in by:
            by = f"{by}.{node.name}" if by else node.name
        if isinstance(node, Function | ast.Lambda):
            scopes = [*scopes, self._locals(node)]
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            targets = (n for c in node.generators for n in ast.walk(c.target) if isinstance(n, ast.Name))
            scopes = [*scopes, {n.id: None for n in targets}]
        for child in ast.iter_child_nodes(node):
            self._visit(child, by, scopes)

    def _visit_attribute(self, node: ast.Attribute, by: str, scopes: list[dict[str, Key | None]]) -> None:
        if not isinstance(node.ctx, ast.Load):
            return
        if isinstance(node.value, ast.Name):
            owner = node.value.id
            meaning = self._meaning(owner, scopes)
            local = any(owner in scope for scope in scopes)
            if meaning and not meaning[1]:  # a module of ours
                self.uses.append(Use((self.name, by), (meaning[0], node.attr), ""))
                return
            if meaning is None and not local and owner in self.bound:  # another package's
                return
        self.uses.append(Use((self.name, by), None, node.attr))

    def _meaning(self, name: str, scopes: list[dict[str, Key | None]]) -> Key | None:
        for scope in reversed(scopes):
            if name in scope:
                return scope[name]
        return self.bound.get(name)

    def _locals(self, node: "Function | ast.Lambda") -> dict[str, Key | None]:
        """Names bound in a function, not those of functions in it."""
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        found: dict[str, Key | None] = {a.arg: None for a in every if a}
        left, shared = list(node.body) if isinstance(node.body, list) else [node.body], set()
        while left:
            n = left.pop()
            if isinstance(n, ast.Import | ast.ImportFrom):
                found.update({name: key if key[0] else None for name, key in self._imported(n).items()})
            elif isinstance(n, ast.Global):
                shared.update(n.names)
            elif isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
                found[n.id] = None
            if isinstance(n, Function | ast.ClassDef):
                found[n.name] = None
            elif not isinstance(n, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
                left.extend(ast.iter_child_nodes(n))
        return {name: key for name, key in found.items() if name not in shared}


def _ours(name: str) -> str:
    """``kfree.rows.base`` -> ``rows.base``; "." for kfree itself, "" for what is not ours."""
    return name.removeprefix("kfree.") if name.startswith("kfree.") else "." if name == "kfree" else ""


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def read(source: Path) -> dict[str, Module]:
    """All modules under a folder ``kfree``, by dotted name; the package itself is "."."""
    files = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "."
        files[name] = path
    packages = {name: path.name == "__init__.py" for name, path in files.items()}
    return {name: Module(name, ast.parse(path.read_text()), packages) for name, path in files.items()}


class House:
    """All modules, and what in them is alive."""

    def __init__(self, source: Path):
        self.modules = read(source)
        self.kernels = _registry(source / "kernels" / "registry.py")
        self.public = _public(source / "__init__.py")
        self.alive: set[Key] = {(name, "") for name in self.modules}
        self.read: set[str] = _read_by_templates(source)
        self._grow()

    def _grow(self) -> None:
        """Follow mentions until nothing more comes to life."""
        self.alive |= {self._home(key) for key in self._public_names()}
        size = -1
        while size != len(self.alive) + len(self.read):
            size = len(self.alive) + len(self.read)
            for use in (use for module in self.modules.values() for use in module.uses if use.by in self.alive):
                if use.of is None:
                    self.read.add(use.attribute)
                else:
                    self.alive.add(self._home(use.of))
            for module in self.modules.values():
                for name in module.definitions:
                    if (module.name, name) not in self.alive and self._lives(module, name):
                        self.alive.add((module.name, name))

    def _home(self, key: Key) -> Key:
        """Where a name that was imported by way of another module was made."""
        seen = set()
        while key not in seen and key[0] in self.modules and key[1] not in self.modules[key[0]].definitions:
            seen.add(key)
            key = self.modules[key[0]].bound.get(key[1]) or key
        return key

    def _public_names(self) -> Iterator[Key]:
        for module in self.modules.values():
            for name in module.definitions:
                if "." not in name and name in self.public and module.name.split(".")[0] in _OPEN:
                    yield module.name, name

    def _lives(self, module: Module, name: str) -> bool:
        owner, _, last = name.rpartition(".")
        if last.startswith("__") or last in ALLOWED or name in ALLOWED:
            return not owner or (module.name, owner) in self.alive
        if owner:
            open_to_users = not last.startswith("_") and (module.name, owner) in self._public_classes
            return (module.name, owner) in self.alive and (open_to_users or last in self.read)
        asked = name in self.read or name in self._named
        return name in self.kernels and module.name.endswith(self.kernels[name]) and asked

    @cached_property
    def _named(self) -> set[str]:
        """Words that modules other than the registry of kernels spell out: a kernel may be asked for by its name."""
        return {
            text for module in self.modules.values() if module.name != "kernels.registry" for text in module.strings
        }

    @cached_property
    def _public_classes(self) -> set[Key]:
        """Public classes and their bases, as far as they are ours."""
        left, found = list(self._public_names()), set()
        while left:
            module, name = left.pop()
            if (module, name) not in found and module in self.modules:
                found.add((module, name))
                names = (base.id for base in self.modules[module].bases.get(name, ()) if isinstance(base, ast.Name))
                bases = (self.modules[module].bound.get(base) for base in names)
                left.extend(self._home(key) for key in bases if key)
        return found

    def dead(self) -> list[Definition]:
        """Definitions that are not alive; of a dead class only the class."""
        found = []
        for module in self.modules.values():
            for name, definition in module.definitions.items():
                owner = name.rpartition(".")[0]
                if (module.name, name) in self.alive or (owner and (module.name, owner) not in self.alive):
                    continue
                found.append(definition)
        return sorted(found, key=lambda d: (d.module, d.line))

    def strangers(self) -> list[str]:
        """Modules that no other imports."""
        wanted = {name for module in self.modules.values() for name in module.imports}
        wanted |= {_ours(text) for module in self.modules.values() for text in module.strings if "." in text}
        wanted |= {f"kernels.reference.{file}" for file in self.kernels.values()}
        wanted |= {".", "kernels.native", "kernels.reference"}
        # importing a module imports the packages around it
        wanted |= {name.rsplit(".", k)[0] for name in wanted for k in range(1, name.count(".") + 1)}
        return sorted(set(self.modules) - wanted - {"__main__"})


def _value(path: Path, name: str) -> ast.expr:
    """What a module assigns to a name."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name:
            return node.value
    raise LookupError(f"{path} has no {name}.")


def _read_by_templates(source: Path) -> set[str]:
    """Attributes that templates read."""
    code = [c for path in source.rglob("*.html") for c in re.findall(r"{[{%](.*?)[%}]}", path.read_text(), re.DOTALL)]
    return {name for text in code for name in re.findall(r"\.(\w+)", text)}


def _registry(path: Path) -> dict[str, str]:
    """Kernels and the files they live in."""
    files = ast.literal_eval(_value(path, "FILES"))
    return {name: file for file, names in files.items() for name in names.split()}


def _public(path: Path) -> set[str]:
    return set(ast.literal_eval(_value(path, "__all__")))


def findings(source: Path) -> list[str]:
    """One line for each name nobody uses."""
    house = House(source)
    lines = [f"{name}: no other module imports it" for name in house.strangers()]
    return lines + [f"{d.module}:{d.line}: {d.kind} {d.name}" for d in house.dead()]


def main() -> int:
    """Print what was found."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    found = findings(root / "src" / "kfree")
    print("\n".join([*found, f"{len(found)} names that nobody uses"]))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
