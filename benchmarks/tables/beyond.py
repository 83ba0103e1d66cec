"""Files that are larger than the memory a fit takes."""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.report import Mark, Table
from benchmarks.tables.scaling import write_rows

WORKER = Path(__file__).resolve().parents[1] / "beyond_worker.py"
COLUMNS, CLUSTERS = 16, 50
#: Rows of the files, at most, and the share of the free disk that they and what is made of them may take.
MOST, SHARE = 156_250_000, 0.7
HEADER = [
    "file",
    "GB",
    "rows",
    "K",
    "passes",
    "reading, s",
    "fit, s",
    "peak, GB",
    "bytes a row",
    "same as mapped",
]
TEXT = (
    "Gaussians in 16 columns, separation 2, float64, `DPMeans(n_clusters=50)` in a fresh process. An .npy file is "
    "mapped; Parquet is decoded once to a mapped file beside it. The peak is what the process holds besides pages of "
    "files, over what it held before; the system may take pages of files back at any time."
)


def fitted(path):
    """What a fresh process says of a fit."""
    done = subprocess.run([sys.executable, WORKER, path, str(CLUSTERS)], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout.splitlines()[-1])


def as_parquet(path, folder):
    """The rows of an .npy file in Parquet files of 5 million rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, step = np.load(path, mmap_mode="r"), 5_000_000
    for number, start in enumerate(range(0, len(X), step)):
        part = X[start : start + step]
        table = pa.table({f"x{j}": np.ascontiguousarray(part[:, j]) for j in range(part.shape[1])})
        pq.write_table(table, folder / f"part{number:04d}.parquet", compression="none", use_dictionary=False)


def line(name, size, told, same):
    """A line of the table."""
    per_row = told["peak"] / told["rows"]
    figures = told["K"], told["passes"], told["decoding"], told["seconds"]
    return [name, size / 1e9, told["rows"], *figures, told["peak"] / 1e9, per_row, same]


def make(settings):
    """The table."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        room = shutil.disk_usage(folder).free * SHARE
        most = 200_000 if settings.quick else MOST
        n = int(min(most, room / (8 * COLUMNS)))
        mapped = folder / "X.npy"
        write_rows(mapped, n)
        rows = [line("npy", 8 * COLUMNS * n, fitted(mapped), "")]
        mapped.unlink()
        # the Parquet files, and the same rows decoded
        n = int(min(n, room / (2 * 8 * COLUMNS)))
        write_rows(mapped, n)
        alone = fitted(mapped)
        parquet = folder / "parts"
        parquet.mkdir()
        as_parquet(mapped, parquet)
        mapped.unlink()
        told = fitted(parquet)
        same = "yes" if told["inertia"] == alone["inertia"] else "NO"
        size = sum(file.stat().st_size for file in parquet.iterdir())
        rows.append(line("Parquet", size, told, same))
    marks = [Mark("bytes of memory a row, most", max(row[8] for row in rows), 60.0, at_least=False)]
    return Table("beyond", "Files larger than memory", TEXT, HEADER, rows, marks=marks)
