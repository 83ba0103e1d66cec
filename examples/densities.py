"""
Soft clusters and a density
===========================

Clusters of different size and shape, rows that belong to two of them, and how likely a new row is: 150 irises.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from kfree import MixtureDisplay, VariationalDPMixture

iris = load_iris(as_frame=True)
petals = iris.data[["petal length (cm)", "petal width (cm)"]]
model = VariationalDPMixture(random_state=0).fit(petals)
print(model.explain())

# %%
# Shades: the density. Ellipses: the components.
MixtureDisplay.from_estimator(model, petals, noun="flowers")
plt.show()

# %%
# Which flowers are between two clusters? Probabilities of each cluster, for the five least certain ones.
probabilities = model.predict_proba(petals)
unsure = np.argsort(probabilities.max(axis=1))[:5]
for row in unsure:
    print(petals.iloc[row].to_numpy(), iris.target_names[iris.target[row]], probabilities[row].round(2))

# %%
# How likely is a flower? The least likely ones of the table, and one that never was.
density = model.score_samples(petals)
print("log density, lowest three of the table:", np.sort(density)[:3].round(1))
never = petals.iloc[:1].assign(**{"petal length (cm)": 3.0, "petal width (cm)": 2.5})
print("a short and wide petal:", model.score_samples(never).round(1))
