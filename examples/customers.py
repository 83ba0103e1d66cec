"""
Customers, with names on their segments
=======================================

A customer file as it is, ids, categories, dates and gaps included. How many kinds of customers are there, and what is
each like?
"""

# %%
# A made-up file: four kinds of customers, of which kfree is told nothing.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from kfree import ClusterMapDisplay, DPMeans, TablePreparer

rng = np.random.default_rng(0)
n = 500
kind = rng.choice(4, n, p=[0.35, 0.3, 0.2, 0.15])
customers = pd.DataFrame(
    {
        "customer_id": 10_000 + rng.permutation(n),
        "age": (np.array([24, 41, 68, 45])[kind] + rng.normal(0, 6, n)).round(),
        "orders": rng.poisson(np.array([3, 8, 4, 30])[kind]),
        "spend": np.exp(np.array([3.2, 5.1, 4.0, 8.0])[kind] + rng.normal(0, 0.6, n)).round(2),
        "newsletter": rng.random(n) < np.array([0.1, 0.5, 0.9, 0.5])[kind],
        "city": rng.choice(["Rome", "Oslo", "Lima"], n),
        "since": pd.Timestamp("2026-01-01") - pd.to_timedelta(300 * kind + rng.integers(1, 200, n), unit="D"),
    }
)
customers.loc[rng.random(n) < 0.03, "age"] = np.nan
customers.head()

# %%
# :class:`kfree.TablePreparer` makes numbers of the columns and says what it did; :class:`kfree.DPMeans` finds the
# clusters, and how many there are.
preparer = TablePreparer().set_output(transform="pandas")
X = preparer.fit_transform(customers)
model = DPMeans().fit(X)
print(preparer.explain())
print()
print(model.explain())

# %%
# What is each cluster? Names speak of the columns in which it differs most.
segments = model.profile(X)
segments[["name", "size"]]

# %%
# Centres, in the units of the file.
preparer.inverse_transform(model.cluster_centers_).drop(columns="customer_id")

# %%
# And a map of all customers.
ClusterMapDisplay.from_estimator(model, X, names=segments["name"], noun="customers")
plt.show()
