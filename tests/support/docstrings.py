"""What docstrings say of parameters."""

import ast
import inspect
import re
from typing import Any, NamedTuple

import kfree


class Said(NamedTuple):
    """What a docstring says of a parameter."""

    kind: str  # what stands behind the colon, without the default
    default: Any  # what stands behind "default=", "no default" if nothing does
    text: str  # what follows


def parameters(cls) -> dict[str, Said]:
    """Every parameter that a class documents, in order; "As in" another class is looked up there."""
    doc = inspect.getdoc(cls)
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-{3,}\n)", doc, re.DOTALL | re.MULTILINE).group(1)
    entry, found = r"^(\w[\w, ]*?)(?: : ([^\n]*))?\n((?:[ ]+[^\n]*\n|\n)*)", {}
    for names, kind, text in re.findall(entry, section, re.MULTILINE):
        for name in names.split(", "):
            other = re.match(r"\s+As in :class:`(\w+)`", text)
            there = parameters(getattr(kfree, other.group(1)))[name] if other else None
            if there is not None and not kind:
                found[name] = there
                continue
            what, _, default = kind.partition("default=")
            own = ast.literal_eval(default) if default else "no default"
            found[name] = Said(what.strip(", "), own, text if there is None else text + there.text)
    return found
