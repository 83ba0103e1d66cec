"""The import order of the house: imports point up the list of layers only, and outsiders stay in their place."""

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import figures
import kfree
from kfree.kernels import native, reference, registry

ROOT = Path(kfree.__file__).parent
BESIDE = Path(__file__).parent.parent
SCRIPTS = sorted(
    path for folder in ("benchmarks", "docs", "examples", "tools") for path in (BESIDE / folder).rglob("*.py")
)
MODULES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))

#: What each layer may import of ours, besides itself.
LAYERS = {
    "kernels": (),
    "families": (),
    "structures": (),
    "rows": ("kernels", "families"),
    "files": ("families", "rows"),
    "inference": ("kernels", "families", "structures", "rows"),
    "models": ("families", "structures", "rows", "inference"),
    "estimators": ("families", "structures", "rows", "inference", "models"),
    "displays": ("families", "models", "estimators"),
    "reports": ("families", "models", "estimators", "displays"),
    "cli": ("files", "estimators", "displays", "reports"),
}
#: Modules below the displays whose ``plot`` opens one, inside of the function: the only imports that point down.
DOORS = ("estimators/lam.py", "models/features.py")
#: Where a package of others may be imported: folders or files.
PLACES = {
    "sklearn": ("estimators/", "displays/", "cli/"),
    "joblib": ("inference/features/restarts.py", "inference/gibbs/chains.py"),
    "dask": "rows/dask.py",
    "distributed": "rows/dask.py",
    "click": "cli/",
    "rich": "cli/",
    "anndata": "anndata.py",
    "jinja2": "reports/",
    "pyarrow": ("files/", "estimators/_sklearn.py", "cli/"),
}
#: Modules beside the layers, which may import all of them.
ABOVE = ("__init__.py", "__main__.py", "anndata.py", "versions.py")


def imports(module):
    """All imports of a module, also those inside functions: (dotted name, inside a function)."""
    found = []

    def visit(node, inside):
        if isinstance(node, ast.Import):
            found.extend((alias.name, inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                package = ("kfree", *Path(module).parent.parts)
                base = ".".join((*package[: len(package) - node.level + 1], *filter(None, [node.module])))
            else:
                base = node.module
            found.append((base, inside))
            # "from kfree import families" names a layer, "from kfree.families import KL" does not
            found.extend((f"{base}.{alias.name}", inside) for alias in node.names if base == "kfree")
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            visit(child, inside)

    visit(ast.parse((ROOT / module).read_text()), False)
    return found


def layer_of(module):
    return module.split("/")[0] if "/" in module else None


def test_every_module_belongs_to_a_layer():
    strangers = {m for m in MODULES if layer_of(m) not in LAYERS and m not in ABOVE}
    assert not strangers
    assert {"kernels", "families", "rows", "inference"} <= {layer_of(m) for m in MODULES}


@pytest.mark.parametrize("module", [m for m in MODULES if "/" in m])
def test_imports_point_up_the_list_of_layers_only(module):
    layer = layer_of(module)
    ours = {
        name.split(".")[1]
        for name, inside in imports(module)
        if name.startswith("kfree.") and not (inside and module in DOORS and name.startswith("kfree.displays."))
    }
    assert ours & set(LAYERS) <= {layer, *LAYERS[layer]}
    if any(name == "kfree" for name, _ in imports(module)):
        assert layer in ("estimators", "displays", "reports", "cli")  # the public names sit above everything else


@pytest.mark.parametrize("module", MODULES)
def test_packages_of_others_stay_in_their_place(module):
    for name, inside in imports(module):
        package = name.split(".")[0]
        if package in PLACES:
            assert module.startswith(PLACES[package]), f"{package} is imported in {module}"
        if package in ("matplotlib", "jinja2") or (package == "pyarrow" and layer_of(module) != "cli"):
            assert inside, f"{package} is imported at the top of {module}"


def test_private_parts_of_scikit_learn_are_imported_in_one_file_only():
    for module in MODULES:
        private = [name for name, _ in imports(module) if name.startswith("sklearn") and "._" in name]
        assert not private or module == "estimators/_sklearn.py"


def test_kernels_have_twins_with_the_same_arguments():
    assert native.__all__ == reference.__all__ == sorted(native.__all__)
    for name in native.__all__:
        fast, plain = getattr(native, name), getattr(reference, name)
        assert list(inspect.signature(fast).parameters) == list(inspect.signature(plain).parameters)


def test_kernels_live_in_the_files_that_the_registry_names():
    folder = ROOT / "kernels" / "reference"
    made = {
        ".".join(path.relative_to(folder).with_suffix("").parts): {
            node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)
        }
        for path in folder.rglob("*.py")
    }
    for file, names in made.items():  # the files that it does not name hold helpers only
        assert names & set(registry.NAMES) == set(registry.FILES.get(file, "").split()), file
    assert set(registry.FILES) <= set(made)
    declared = re.compile(r'border::kernel<[^"]*"(\w+)\(')
    for file, names in registry.FILES.items():
        source = BESIDE / "native" / (file.replace(".", "/") + ".cpp")
        assert sorted(declared.findall(source.read_text())) == names.split(), source


def test_no_module_name_occurs_twice_in_a_layer():
    # the twins of kernels are layers of their own here
    names = figures.module_names(figures.read(ROOT))
    assert not figures.twice(names)


def test_no_two_records_of_a_layer_have_one_name():
    assert not figures.twice(figures.record_names(figures.read(ROOT)))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.relative_to(BESIDE).as_posix())
def test_scripts_beside_the_package_import_names_that_exist(script):
    for node in ast.walk(ast.parse(script.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("kfree"):
            module = importlib.import_module(node.module)
            missing = [alias.name for alias in node.names if not hasattr(module, alias.name)]
            assert not missing, f"{node.module} has no {', '.join(missing)}"


def test_importing_kfree_imports_nothing_the_user_did_not_ask_for():
    code = (
        "import sys, sklearn.neighbors\n"  # which has a progress bar of rich's, where there is one
        "before = set(sys.modules)\n"
        "import kfree\n"
        "for name in getattr(kfree, '__all__', ()): getattr(kfree, name)\n"
        "names = {'kfree.kernels.native', 'matplotlib', 'anndata', 'dask', 'distributed', 'click', 'rich', 'jinja2'}\n"
        "print(sorted(names & (set(sys.modules) - before)))"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COV")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr
