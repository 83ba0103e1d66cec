"""Cluster the handwritten digits that come with scikit-learn, without saying that there are ten kinds.

python examples/demo.py demo      writes labels, pictures and a report into the folder demo/
"""

import argparse
import csv
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from kfree import DPMeans, lam_path

#: A tenth of a typical image in every cluster, so that a pixel no member uses does not exclude a row for good.
SMOOTHING = 0.1
FILES = ("labels.csv", "centres.png", "lam_path.png", "report.md")


def write_labels(path, labels, digits, margin):
    """One line an image: its cluster, the digit it shows, and how far it is from the centre."""
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["image", "cluster", "digit", "divergence"])
        writer.writerows((i, int(k), int(d), f"{far:.4f}") for i, (k, d, far) in enumerate(zip(labels, digits, margin)))


def draw_centres(path, model, counts):
    """Centres as images, heaviest first, each with its size and the digit most of its members show."""
    K = model.n_clusters_
    rows = -(-K // 6)
    columns = -(-K // rows)
    fig, axes = plt.subplots(
        rows, columns, figsize=(1.6 * columns, 1.95 * rows + 0.4), squeeze=False, layout="constrained"
    )
    for ax in axes.flat:
        ax.axis("off")
    for k, ax in zip(range(K), axes.flat):
        share = counts[k].max() / counts[k].sum()
        ax.imshow(model.cluster_centers_[k].reshape(8, 8), cmap="Blues", interpolation="nearest")
        ax.set_title(f"{counts[k].sum()} images\n{100 * share:.0f} % show a {counts[k].argmax()}", fontsize=8.5)
    fig.suptitle(f"{K} clusters of handwritten digits: their centres", fontsize=11)
    fig.savefig(path, dpi=130)
    plt.close(fig)


def draw_path(path, record):
    """How clearly rows belong to their cluster, for every number of clusters."""
    fig, ax = plt.subplots(figsize=(7.0, 4.2), layout="constrained")
    record.plot(ax)
    fig.savefig(path, dpi=130)
    plt.close(fig)


def table_of(model, counts):
    """Rows of the report: cluster, images, and the digits that make up at least a tenth of it."""
    for k, row in enumerate(counts):
        order = [d for d in np.argsort(-row, kind="stable") if row[d] >= 0.1 * row.sum()]
        yield k, int(row.sum()), ", ".join(f"{d} ({100 * row[d] / row.sum():.0f} %)" for d in order)


REPORT = """# What kfree found in {n} handwritten digits

`DPMeans(divergence="kl", smoothing={smoothing}, random_state=0)` on the 8 x 8 images that come with scikit-learn.
It was not told that there are ten digits, nor which image shows which.

| | |
|---|---|
| clusters found | {K} |
| groups with a gap between them | {groups} |
| price of a cluster chosen, lam | {lam:.3g} |
| {K} clusters are best for lam between | {lo:.3g} and {hi:.3g} |
| agreement with the true digits, ARI | {ari:.3f} |
| agreement with the true digits, NMI | {nmi:.3f} |
| time | {seconds:.1f} s |

ARI and NMI are 1 for perfect agreement; ARI is 0 on average for labels drawn at random.

| cluster | images | digits that make up at least a tenth of it |
|---|---|---|
{rows}

Where a cluster holds two digits, their images have no gap between them that this divergence can see.

![centres](centres.png)

![how clearly rows belong to their cluster](lam_path.png)

The second picture is why: how clearly images belong to their cluster, for every number of clusters, and how clearly
they would in tables with columns like these but without groups.
`labels.csv` has one line for each image.
"""


def main(folder):
    """Fit, print, write."""
    folder.mkdir(parents=True, exist_ok=True)
    data = load_digits()
    X, digits = data.data, data.target
    print(f"{X.shape[0]} images of handwritten digits, {X.shape[1]} pixels each. How many kinds are there?")
    start = time.perf_counter()
    model = DPMeans(divergence="kl", smoothing=SMOOTHING, random_state=0).fit(X)
    seconds = time.perf_counter() - start

    labels = model.labels_
    counts = np.array([np.bincount(digits[labels == k], minlength=10) for k in range(model.n_clusters_)])
    ari, nmi = adjusted_rand_score(digits, labels), normalized_mutual_info_score(digits, labels)
    lo, hi = model.lam_window_
    print(f"\n  {model.n_clusters_} clusters, in {seconds:.1f} s")
    print(f"  lam = {model.lam_:.3g}, chosen from the data; best for any lam between {lo:.3g} and {hi:.3g}")
    print(f"  agreement with the true digits: ARI {ari:.3f}, NMI {nmi:.3f} (1 is perfect)\n")
    print("  cluster  images  digits in it")
    for k, size, inside in table_of(model, counts):
        print(f"  {k:7d}  {size:6d}  {inside}")

    write_labels(folder / "labels.csv", labels, digits, model.transform(X).min(axis=1))
    draw_centres(folder / "centres.png", model, counts)
    draw_path(folder / "lam_path.png", lam_path(X, divergence="kl", smoothing=SMOOTHING))
    rows = "\n".join(f"| {k} | {size} | {inside} |" for k, size, inside in table_of(model, counts))
    text = REPORT.format(
        n=len(X),
        smoothing=SMOOTHING,
        K=model.n_clusters_,
        groups=model.n_groups_,
        lam=model.lam_,
        lo=lo,
        hi=hi,
        ari=ari,
        nmi=nmi,
        seconds=seconds,
        rows=rows,
    )
    (folder / "report.md").write_text(text)
    print(f"\nLook at {folder / 'report.md'}, {folder / 'centres.png'} and {folder / 'lam_path.png'};")
    print(f"{folder / 'labels.csv'} has one line for each image.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Cluster the handwritten digits that come with scikit-learn.")
    parser.add_argument("folder", nargs="?", default="demo", type=Path, help="where to write (default: demo)")
    main(parser.parse_args().folder)
