"""One table in files of all formats."""

import gzip
from itertools import pairwise

import numpy as np

COLUMNS = ("a", "b", "c")


def rows(seed=0, n=600, dtype=np.float64):
    """Three groups, a little apart."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=8.0, size=(3, len(COLUMNS)))
    return (centres[rng.integers(3, size=n)] + rng.normal(size=(n, len(COLUMNS)))).astype(dtype)


def counts(seed=0, n=300):
    """Counts of three words, whose rates are those of one of two groups."""
    rng = np.random.default_rng(seed)
    return rng.poisson(np.array([[1.0, 9.0, 3.0], [12.0, 2.0, 3.0]])[rng.integers(2, size=n)]) + 1


def table(X, **more):
    """The rows as a pyarrow Table, with a column "id" of text."""
    import pyarrow as pa

    names = {"id": [f"row {i}" for i in range(len(X))]}
    return pa.table(names | {name: X[:, j] for j, name in enumerate(COLUMNS)} | more)


def write_parquet(folder, made, **more):
    from pyarrow import parquet

    parquet.write_table(made, folder / "x.parquet", row_group_size=more.get("group", 100))
    return folder / "x.parquet"


def write_csv(folder, made, **more):
    from pyarrow import csv

    csv.write_csv(made, folder / "x.csv")
    return folder / "x.csv"


def write_packed_csv(folder, made, **more):
    path = write_csv(folder, made)
    (folder / "x.csv.gz").write_bytes(gzip.compress(path.read_bytes()))
    return folder / "x.csv.gz"


def write_tsv(folder, made, **more):
    from pyarrow import csv

    csv.write_csv(made, folder / "x.tsv", csv.WriteOptions(delimiter="\t"))
    return folder / "x.tsv"


def write_json(folder, made, **more):
    import json

    with open(folder / "x.jsonl", "w") as file:
        file.writelines(json.dumps(row) + "\n" for row in made.to_pylist())
    return folder / "x.jsonl"


def write_feather(folder, made, **more):
    from pyarrow import feather

    feather.write_feather(made, folder / "x.feather", chunksize=more.get("group", 100))
    return folder / "x.feather"


def write_stream(folder, made, **more):
    import pyarrow as pa

    with pa.ipc.new_stream(folder / "x.arrow", made.schema) as stream:
        stream.write_table(made, max_chunksize=more.get("group", 100))
    return folder / "x.arrow"


def write_folder(folder, made, **more):
    from pyarrow import parquet

    (folder / "parts").mkdir(exist_ok=True)
    (folder / "parts" / "_SUCCESS").write_text("")
    cuts = np.linspace(0, made.num_rows, 12).astype(int)
    for i, (start, stop) in enumerate(pairwise(cuts)):
        parquet.write_table(made.slice(start, stop - start), folder / "parts" / f"part.{i}.parquet")
    return folder / "parts"


def as_lazy(folder, made, **more):
    import polars

    return polars.scan_parquet(write_parquet(folder, made, **more))


def as_function(folder, made, **more):
    return lambda: made.to_reader(max_chunksize=more.get("group", 100))


#: Formats that keep types; texts make float64 of everything.
TYPED = {
    "parquet": write_parquet,
    "folder": write_folder,
    "feather": write_feather,
    "stream": write_stream,
    "polars": as_lazy,
    "function": as_function,
}
TEXTS = {"csv": write_csv, "packed csv": write_packed_csv, "tsv": write_tsv, "json": write_json}
