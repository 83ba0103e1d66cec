"""Nothing under ``src/kfree`` is there for nobody."""

from pathlib import Path

import kfree
from unused import findings

#: A house with one of everything that is dead, and what looks dead and is not.
FILES = {
    "__init__.py": "from kfree.estimators.public import Public\n__all__ = ['Public']\n",
    "kernels/__init__.py": "def kernels(): ...\n",
    "kernels/registry.py": "FILES = {'rows.some': 'asked never'}\n",
    "kernels/reference/__init__.py": "from kfree.kernels.registry import FILES\nprint(FILES)\n",
    "kernels/reference/rows/some.py": "def asked(): _helper()\ndef never(): ...\ndef _helper(): ...\n",
    "estimators/public.py": (
        "from kfree.rows import part\n"
        "from kfree.rows.part import Record, by_import as another\n"
        "from kfree.kernels import kernels\n"
        "class _Base:\n"
        "    def inherited(self): ...\n"
        "    def _own(self): ...\n"
        "class Public(_Base):\n"
        "    def fit(self):\n"
        "        dead_name = 1\n"
        "        self.set, self._kept = 1, 2\n"
        "        self._never_read = part.by_module(Record(1, 2).used, self._kept, another, kernels().asked)\n"
        "    def _hidden(self): ...\n"
    ),
    "rows/part.py": (
        "from typing import NamedTuple\n"
        "USED, DEAD = 1, 2\n"
        "class Record(NamedTuple):\n"
        "    used: int\n"
        "    unread: int\n"
        "    shown: int\n"
        "    asked_for: int\n"
        "def by_module(x): return inner(USED)\n"
        "def by_import(): ...\n"
        "def inner(dead_name): return dead_name\n"
        "def dead_name(): ...\n"
        "def recursive(): recursive()\n"
        "def first(): second()\n"
        "def second(): ...\n"
        "class Gone:\n"
        "    def whole(self): ...\n"
    ),
    "rows/alone.py": "",
    "rows/page.html": "<p>of.unread {{ record.shown }}{% if record.asked_for %}</p>",
}
DEAD = {
    "rows.alone: no other module imports it",
    "kernels.reference.rows.some:2: function never",
    "estimators.public:6: method _Base._own",
    "estimators.public:11: attribute Public._never_read",
    "estimators.public:12: method Public._hidden",
    "rows.part:2: constant DEAD",
    "rows.part:5: field Record.unread",
    "rows.part:11: function dead_name",
    "rows.part:12: function recursive",
    "rows.part:13: function first",
    "rows.part:14: function second",
    "rows.part:15: class Gone",
}


def test_dead_names_are_told_from_living_ones(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert set(findings(tmp_path)) == DEAD


def test_every_name_has_a_user():
    found = findings(Path(kfree.__file__).parent)
    assert not found, "\n".join(found)
