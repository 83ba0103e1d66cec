"""Try hostile inputs for some minutes: ``python -m fuzz --seconds 300 --seed 1``.

Prints the seed and every broken law; ``--keep`` shrinks what was found to the smallest input that breaks the same law
and keeps it in ``cases``, where the tests try it from then on; ``--write`` puts the counts into docs/theory/tested.md.
``--replay SUBJECT SEED INDEX`` tries one input again.
"""

import argparse
import secrets
import sys
from pathlib import Path

from fuzz import campaign
from fuzz.check import check
from fuzz.subjects import SUBJECTS, draw_case
from pages import filled

PAGE = Path(__file__).parents[2] / "docs" / "theory" / "tested.md"


def table(tally: campaign.Tally, seed: int, seconds: float) -> str:
    """The counts for the page."""
    total = sum(tally.fitted.values()) + sum(tally.refused.values())
    text = f"{total} inputs in {seconds / 60:.0f} minutes (seed {seed}), {sum(tally.bad.values())} bad.\n\n"
    text += "| estimator | inputs | fitted | refused | bad | latest return after `max_time`, s |\n"
    text += "|---|---|---|---|---|---|\n"
    for name in SUBJECTS:
        fitted, refused = tally.fitted[name], tally.refused[name]
        if fitted + refused:
            late = f"{tally.late.get(name, 0.0):.2f}"
            text += f"| {name} | {fitted + refused} | {fitted} | {refused} | {tally.bad[name]} | {late} |\n"
    return text


def replay(subject: str, seed: int, index: int) -> int:
    """One input again."""
    case = draw_case(subject, [seed, index])
    print(f"{subject} {case.params}\n{case.kind}, {case.size}, {case.dtype}, {case.layout}, relation {case.relation!r}")
    verdict = check(case)
    print(verdict.status, *verdict.faults, sep="\n")
    return len(verdict.faults)


def main() -> int:
    """Read the command line; the exit code says whether a law was broken."""
    parser = argparse.ArgumentParser(
        prog="fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", action="append", default=[], choices=list(SUBJECTS))
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--replay", nargs=3, metavar=("SUBJECT", "SEED", "INDEX"))
    parser.add_argument("--work", type=int, default=None, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.replay:
        return replay(asked.replay[0], int(asked.replay[1]), int(asked.replay[2]))
    seed = secrets.randbelow(10**6) if asked.seed is None else asked.seed
    if asked.work is not None:
        campaign.work(seed, asked.work, asked.jobs, asked.only)
    print(f"seed {seed}", flush=True)
    campaign.warm_up(asked.only)
    tally = campaign.run(seed, asked.seconds, asked.jobs, asked.only)
    if asked.keep:
        for found in {(some.subject, some.law): some for some in reversed(tally.found)}.values():
            print(f"kept: {campaign.keep(found).name}")
    text = table(tally, seed, asked.seconds)
    print(text)
    if asked.write:
        PAGE.write_text(filled(PAGE.read_text(), "fuzz", text))
    return int(bool(tally.found))


if __name__ == "__main__":
    sys.exit(main())
