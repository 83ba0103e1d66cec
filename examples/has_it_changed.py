"""
Has this month's table changed?
===============================

A model of last month's rows, and a test of this month's against it: a p-value instead of a look at averages.
"""

# %%
# Columns with the same means and the same spread in all months; in May two kinds of rows became three.
import matplotlib.pyplot as plt
import numpy as np

from kfree import KernelDPMixture

rng = np.random.default_rng(0)


def month(centres, n=400):
    """Rows around some centres, scaled to mean 0 and spread 1."""
    rows = np.array(centres)[rng.integers(len(centres), size=n)] + rng.normal(0, 0.5, (n, 2))
    return (rows - rows.mean(axis=0)) / rows.std(axis=0)


march = month([[-2, -2], [2, 2]])
april = month([[-2, -2], [2, 2]])
may = month([[-2, -2], [0, 0], [2, 2]])

# %%
model = KernelDPMixture(random_state=0).fit(march)
print(model.explain())
for name, rows in (("April", april), ("May", may)):
    test = model.mmd_test(rows)
    print(f"{name}: distance {test.statistic:.4f}, p = {test.pvalue:.3f}")

# %%
figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), sharex=True, sharey=True, layout="constrained")
for ax, name, rows in zip(axes, ("March", "April", "May"), (march, april, may)):
    ax.scatter(*rows.T, s=6, color="#1f4e79")
    ax.set_title(name if name == "March" else f"{name}: p = {model.mmd_test(rows).pvalue:.3f}")
    ax.set_aspect("equal")
plt.show()
