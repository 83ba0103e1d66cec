"""
Pictures taken apart
====================

A picture may show none, one or many things. Which things are there, in pictures of a display that was seen through
noise? Nobody says that it has seven segments.
"""

# %%
# A display with seven segments shows any combination of them.
# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np

from kfree import FeaturesDisplay, StepwiseKFeatures

segments = np.zeros((7, 15, 9))
segments[0, 1:3, 2:7] = segments[1, 6:8, 2:7] = segments[2, 12:14, 2:7] = 1  # top, middle, bottom
segments[3, 2:7, 1:3] = segments[4, 2:7, 6:8] = segments[5, 7:13, 1:3] = segments[6, 7:13, 6:8] = 1  # the sides
rng = np.random.default_rng(0)
lit = rng.random((150, 7)) < 0.4
pictures = lit @ segments.reshape(7, -1) + rng.normal(0, 0.4, (150, 135))

figure, axes = plt.subplots(1, 8, figsize=(9, 2), layout="constrained")
for ax, picture in zip(axes, pictures):
    ax.imshow(picture.reshape(15, 9), cmap="gray")
    ax.axis("off")
figure.suptitle("Eight of 150 pictures")
plt.show()

# %%
# ``base="intercept"``: there may be something that all pictures share, here the dark ground. How many features there
# are is found. ``canonicalize`` puts them in plain words: on, rather than off, is what is rare.
model = StepwiseKFeatures(base="intercept", max_components=9).fit(pictures).canonicalize()
print(model.explain())

# %%
FeaturesDisplay.from_estimator(model, pictures, image_shape=(15, 9))
plt.show()

# %%
# Why seven: how much is left unexplained by each number of features, and between which prices each is best.
# Seven are best for a wide range. (The bar of nine has no end on the left because more were not tried.)
model.path_.plot()
plt.show()

# %%
# Which segments were lit in which picture? Features come in an order of their own: find the segment of each.
segment = (model.components_ @ segments.reshape(7, -1).T).argmax(axis=1)
print(f"right in {(lit[:, segment] == model.Z_).mean():.1%} of all cases")
