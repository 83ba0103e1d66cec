"""Every constant says what it is and where it was set, and the page that lists them is up to date."""

from pathlib import Path

from list_numbers import Number, constants, filled, problems, records, tables
from pages import marks

ROOT = Path(__file__).parent.parent
BEGIN, END = marks("numbers")

RECORD = '''
class SomeNumbers(NamedTuple):
    """Constants of something."""

    # a group

    #: (speed) Rows read
    #: at a time. Set: benchmarks passes.
    rows: int = 1 << 4
    #: Smallest a|b. Set: by hand
    #: (commit "Some").
    smallest: float = 1e-3

    #: Nobody knows from where.
    lost: int = 3
    silent: int = 4
'''


def test_numbers_are_read_with_what_is_said_of_them(tmp_path):
    (tmp_path / "some_numbers.py").write_text(RECORD)
    (record,) = records(tmp_path)
    assert record.numbers[:2] == [
        Number("rows", "1 << 4", "Rows read at a time.", "benchmarks passes", True),
        Number("smallest", "1e-3", "Smallest a|b.", 'by hand (commit "Some")', False),
    ]
    assert record.problems == [
        "some_numbers.py: SomeNumbers.silent has no comment '#: what it is. Set: where.'",
        "some_numbers.py: SomeNumbers.lost does not say 'Set: where.'",
    ]
    page = filled(f"Before.\n{BEGIN}\nold\n{END}\nAfter.\n", tables(tmp_path))
    assert page.startswith(f"Before.\n{BEGIN}\nConstants: 4. Of these, 1 change")
    assert page.endswith(f"{END}\nAfter.\n")
    assert "| `rows` | `1 << 4` | Rows read at a time. | benchmarks passes | yes |" in page
    assert "Smallest a\\|b." in page


def test_numbers_outside_records_are_found(tmp_path):
    path = tmp_path / "module.py"
    path.write_text("A = 1\n_B, C = 2.0, -3\nD: int = 1 << 4\nE = np.sqrt(2)\nF = 'x'\nG = ('y', 1)\nh = 1\nI = True\n")
    assert constants(path) == ["A", "_B", "C", "D", "E"]


def test_every_number_is_explained_and_the_page_lists_them():
    assert problems(ROOT) == []
