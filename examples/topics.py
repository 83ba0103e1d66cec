"""
Topics of texts
===============

What is SciPy about? Its own documentation, 1200 short texts, sorted into topics. How many topics there are is found.
"""

# %%
# The texts: what every public function of SciPy says of itself, without the examples.
import importlib
import inspect
import re

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer

from kfree import HDPTopics, TopicsDisplay

packages = ["fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "spatial", "special", "stats"]
texts = {}
for package in packages:
    module = importlib.import_module(f"scipy.{package}")
    for name in module.__all__:
        text = inspect.getdoc(getattr(module, name)) or ""
        if callable(getattr(module, name)) and len(text) > 600:
            texts[f"{package}.{name}"] = re.split(r"\nExamples\n-+", text)[0]

vectorizer = CountVectorizer(stop_words="english", min_df=5, max_df=0.2, token_pattern="[a-z]{3,}")
counts = vectorizer.fit_transform(texts.values())
print(f"{counts.shape[0]} texts, {counts.shape[1]} words")

# %%
# Rows are texts, columns are words. Names of topics are made of their words.
model = HDPTopics().fit(counts)
model.name_topics(vectorizer)
print(model.explain())

# %%
TopicsDisplay.from_estimator(model, max_topics=8, n_words=6)
plt.show()

# %%
# Do topics know the packages? Share of the texts of each package (columns) that have a topic (rows) as their main one.
topic = pd.Categorical.from_codes(model.doc_labels_, list(model.topic_names_))
package = [name.split(".")[0] for name in texts]
table = pd.crosstab(topic, package, normalize="columns")
table.loc[table.max(axis=1) > 0.3].style.format("{:.0%}").background_gradient("Blues", axis=None)

# %%
# Rather fewer? Topics are merged, without a new fit.
for words in model.reduce_topics(8).top_words(7, vocabulary=vectorizer):
    print(" ".join(words))
