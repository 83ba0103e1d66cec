"""
How many are there?
===================

Why kfree says three, and how clusters split when you ask for more: 178 wines of three growers, 13 measurements each.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from kfree import ClusterTreeDisplay, DPMeans, LamPathDisplay, lam_path

wine = load_wine()
X = StandardScaler().fit_transform(wine.data)
model = DPMeans().fit(X)
print(model.explain())

# %%
# The same in a picture. Blue: how clearly wines belong to their cluster, for every number of clusters. Grey: the same
# in tables with columns like these, but without groups. The number where blue stands out most is taken.
path = lam_path(X, max_clusters=12)
LamPathDisplay.from_path(path)
plt.show()

# %%
# Rather more? The tree shows which cluster each one comes from.
ClusterTreeDisplay.from_path(path, levels=[1, 2, 3, 4, 6, 8], noun="wines")
plt.show()

# %%
# The growers were known all along. A row for each, a column for each cluster.
for grower in range(3):
    mine = model.labels_[wine.target == grower]
    print(wine.target_names[grower], [int((mine == k).sum()) for k in range(model.n_clusters_)])
