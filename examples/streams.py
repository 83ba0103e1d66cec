"""
Rows that keep coming
=====================

Batches arrive one by one, and none is kept. Clusters open when something new appears, and the old ones keep their
numbers.
"""

# %%
# Every day 300 rows; the third day brings a kind that was not there before, the fifth another one.
import matplotlib.pyplot as plt
import numpy as np

from kfree import DPMeans

rng = np.random.default_rng(0)
centres = np.array([[0, 0], [6, 1], [3, 6], [9, 7], [-3, 5]])
kinds_of_day = [3, 3, 4, 4, 5, 5]
days = [centres[rng.integers(kinds, size=300)] + rng.normal(0, 0.7, (300, 2)) for kinds in kinds_of_day]

# %%
# The first batch says how near is near; ``decision_function`` is negative for rows that no cluster is near.
model = DPMeans()
figure, axes = plt.subplots(2, 3, figsize=(9, 6), sharex=True, sharey=True, layout="constrained")
for day, (rows, ax) in enumerate(zip(days, axes.flat), start=1):
    novel = int((model.decision_function(rows) < 0).sum()) if day > 1 else 0
    model.partial_fit(rows)
    ax.scatter(*rows.T, c=model.predict(rows), cmap="tab10", vmin=0, vmax=9, s=8)
    for k, centre in enumerate(model.cluster_centers_):
        ax.annotate(k, centre, fontsize=14, weight="bold", ha="center", va="center", bbox={"fc": "white", "alpha": 0.7})
    ax.set_title(f"day {day}: {model.n_clusters_} clusters, {novel} novel rows")
plt.show()

# %%
# Weights are those of all rows so far.
print(model.cluster_weights_)
