"""Parts of pages that tools write: between two marks, the rest is ours."""


def marks(name: str) -> tuple[str, str]:
    """The lines between which a part stands."""
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def filled(page: str, name: str, text: str) -> str:
    """The page with a text between the marks of a part."""
    begin, end = marks(name)
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"The page needs the lines {begin} and {end}.")
    return f"{before}{begin}\n{text}{end}{after}"
