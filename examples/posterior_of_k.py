"""
How sure is the number?
=======================

Speeds of 82 galaxies. They come in clusters, with empty space between; but how many? With so few rows an honest answer
is not a number but a probability for each.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from kfree import GibbsDPMixture

# Postman, Huchra & Geller (1986): km/s, in the region of the Northern Crown
speeds = """
    9172  9350  9483  9558  9775 10227 10406 16084 16170 18419 18552 18600 18927 19052 19070 19330 19343 19349 19440
   19473 19529 19541 19547 19663 19846 19856 19863 19914 19918 19973 19989 20166 20175 20179 20196 20215 20221 20415
   20629 20795 20821 20846 20875 20986 21137 21492 21701 21814 21921 21960 22185 22209 22242 22249 22314 22374 22495
   22746 22747 22888 22914 23206 23241 23263 23484 23538 23542 23666 23706 23711 24129 24285 24289 24366 24717 24990
   25633 26960 26995 32065 32789 34279
"""
X = np.array(speeds.split(), dtype=float)[:, None] / 1000
model = GibbsDPMixture(random_state=0).fit(X)
print(model.explain())

# %%
# How many clusters, and with which probability.
numbers, probability = model.posterior_n_clusters_
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.bar(numbers, probability, color="#1f4e79")
left.set(xlabel="clusters", ylabel="probability", title="How many clusters of galaxies?")

# The density is drawn over the speeds.
grid = np.linspace(5, 40, 500)[:, None]
right.hist(X[:, 0], bins=40, density=True, color="#c8ced3")
right.plot(grid, np.exp(model.score_samples(grid)), color="#c55a11")
right.set(xlabel="speed, 1000 km/s", ylabel="density", title="Density, all partitions averaged")
plt.show()

# %%
# Who is with whom? Rows and columns are galaxies by speed; dark: together in most partitions.
plt.imshow(model.coclustering_, cmap="Blues", vmin=0, vmax=1)
plt.xlabel("galaxy, slowest first")
plt.title("Probability that two galaxies are in one cluster")
plt.colorbar()
plt.show()

# %%
# Have the chains seen enough?
print(model.diagnostics_)
