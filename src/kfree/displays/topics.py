"""TopicsDisplay: the first words of each topic, or the topics on a plane."""

from typing import Any

import numpy as np
from scipy.spatial.distance import pdist, squareform
from sklearn.decomposition import PCA
from sklearn.manifold import smacof
from sklearn.utils.validation import check_is_fitted

from kfree.displays.drawing import (
    cut,
    fold,
    ground,
    make_axes,
    make_panels,
    set_head,
    set_title,
    small_font,
    tidy,
)
from kfree.displays.palette import colours
from kfree.displays.placing import place_names
from kfree.displays.reading import check_names, in_words, percent
from kfree.families import Array
from kfree.models.checks import check_choice, check_number
from kfree.models.topic_words import check_vocabulary, name_topics

KINDS = ("bars", "map")
#: Inches of a panel of bars.
_PANEL = 1.9
#: Letters of a word, and inches of a name on the map.
_WORD, _NAME = 16, 1.3
#: Area of all circles of the map, as a share of the axes.
_CIRCLES = 0.25


class TopicsDisplay:
    """Topics: their first words as bars, or all of them on a map.

    Made by :meth:`from_estimator`.

    Parameters
    ----------
    components : array (K, V)
        Probabilities of the words in the topics.
    words : sequence of str
        The words.
    sizes : array (K,)
        Tokens of each topic.
    names : sequence of str, default=None
        Names of the topics; words that are special to them by default.
    n_documents : int, default=None
        For the title.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
        One for each topic shown as bars.
    ax_, figure_ : matplotlib Axes and Figure
        Those of the map; of bars the axes that they stand in.
    bars_ : list of BarContainer
    title_ : Text
        What stands above the bars.
    points_ : PathCollection
        The circles of the map.
    names_ : list of Text
        The names on the map.

    Examples
    --------
    >>> import numpy as np
    >>> from kfree import HDPTopics, TopicsDisplay
    >>> rng = np.random.default_rng(0)
    >>> topics = np.repeat(np.eye(3), 20, axis=1) / 20
    >>> X = np.array([rng.multinomial(80, topics[j % 3]) for j in range(90)])
    >>> display = TopicsDisplay.from_estimator(HDPTopics().fit(X), n_words=4)
    >>> [len(bars) for bars in display.bars_]
    [4, 4, 4]
    """

    def __init__(self, *, components, words, sizes, names=None, n_documents=None):
        self.components = np.asarray(components, dtype=np.float64)
        self.words = np.asarray(words, dtype=object)
        self.sizes = np.asarray(sizes, dtype=np.float64)
        background = self.sizes @ self.components / self.sizes.sum()
        if names is None:
            names = name_topics(self.components, np.maximum(background, np.finfo(float).tiny), self.words)
        self.names = check_names(names, len(self.components))
        self.n_documents = n_documents

    @classmethod
    def from_estimator(cls, estimator, *, kind="bars", vocabulary=None, names=None, n_words=8, max_topics=12, ax=None):
        """Draw the topics of a fitted :class:`HDPTopics`.

        Parameters
        ----------
        estimator : fitted HDPTopics
        vocabulary : array of str or vectorizer, default=None
            Names of the words, or a fitted vectorizer that knows them; by default the names of the columns X had in
            the fit, or their numbers if it had none.
        names : sequence of str, default=None
            Names of the topics; by default words that are special to them, as in ``topic_names_``.
        kind, n_words, max_topics, ax
            As in :meth:`plot`.

        Returns
        -------
        TopicsDisplay
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "topic_word_counts_"):
            raise TypeError(f"{type(estimator).__name__} has no topics: topic_word_counts_ is missing. Use HDPTopics.")
        p = estimator.n_features_in_
        words = getattr(estimator, "vocabulary_", getattr(estimator, "feature_names_in_", np.arange(p).astype(str)))
        if vocabulary is not None:
            words = check_vocabulary(vocabulary, p)
        elif names is None:
            names = estimator.topic_names_
        display = cls(
            components=estimator.components_,
            words=words,
            sizes=np.asarray(estimator.topic_word_counts_.sum(axis=1)).ravel(),
            names=names,
            n_documents=estimator.doc_topic_.shape[0] if hasattr(estimator, "doc_topic_") else None,
        )
        return display.plot(ax, kind=kind, n_words=n_words, max_topics=max_topics)

    def plot(self, ax=None, *, kind="bars", n_words=8, max_topics=12):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to; new ones by default.
        kind : {"bars", "map"}, default="bars"
            "bars": the first words of the largest topics. "map": a circle for each topic, its area the share of the
            tokens; topics with similar words are near each other.
        n_words : int, default=8
            Words of a topic.
        max_topics : int, default=12
            Topics shown as bars, at most.

        Returns
        -------
        self
        """
        check_choice("kind", kind, KINDS)
        check_number("n_words", n_words, least=1, integer=True)
        check_number("max_topics", max_topics, least=1, integer=True)
        if kind == "bars":
            self._draw_bars(ax, n_words, max_topics)
        else:
            self._draw_map(make_axes(ax))
        return self

    def _first(self, k: int, n: int) -> Array:
        """The first words of a topic."""
        return self.words[np.argsort(-self.components[k], kind="stable")[:n]]

    def _largest(self, n: int) -> Array:
        return np.argsort(-self.sizes, kind="stable")[:n]

    def _draw_bars(self, ax: Any, n_words: int, most: int) -> None:
        shown = self._largest(most)
        panels = make_panels(ax, len(shown), (_PANEL, 0.4 + 0.16 * n_words))
        self.ax_, self.axes_, self.figure_ = panels.outer, panels.inner, panels.outer.figure
        self.bars_ = [self._draw_topic(one, k, n_words) for one, k in zip(self.axes_, shown)]
        self.title_ = set_head(panels, self._title(len(self.axes_)) + ", with their shares of the words")

    def _draw_topic(self, ax: Any, k: int, n_words: int) -> Any:
        """The bars of one topic."""
        words = self._first(k, n_words)
        values = np.sort(self.components[k])[::-1][: len(words)]
        bars = ax.barh(range(len(words)), values, color=colours(len(self.sizes))[k], height=0.75)
        ax.set_yticks(range(len(words)), [cut(str(word), _WORD) for word in words], fontsize=8)
        ax.set(ylim=(len(words) - 0.4, -0.6), xticks=[])
        ax.tick_params(axis="y", length=0, pad=2)
        share = self.sizes[k] / self.sizes.sum()
        ax.set_title(f"{k}: {percent(share)}", fontsize=8, loc="left")
        tidy(ax, "")
        ax.spines[["bottom", "left"]].set_visible(False)
        return bars

    def _draw_map(self, ax: Any) -> None:
        self.ax_, self.figure_ = ax, ax.figure
        xy, K = _plane(self.components), len(self.components)
        share = self.sizes / self.sizes.sum()
        box = ax.get_window_extent()
        area = _CIRCLES * box.width * box.height * (72 / ax.figure.dpi) ** 2  # in points
        shades = colours(K)
        self.points_ = ax.scatter(*xy.T, s=area * share, c=shades, alpha=0.75, lw=1, ec=[ground(ax)] * K)
        ax.set(xticks=[], yticks=[], xlabel="topics with similar words are near each other")
        ax.margins(0.14)
        ax.spines[:].set_visible(False)
        set_title(ax, self._title(K))
        order = self._largest(K)
        names = [fold(cut(self.names[k], 40), _NAME, small_font(ax)) for k in order]
        short = [cut(str(self._first(k, 1)[0]), _WORD) for k in order]
        self.names_, _ = place_names(ax, xy[order], names, short, [shades[k] for k in order])

    def _title(self, shown: int) -> str:
        text = in_words(len(self.components), "topics")
        if self.n_documents is not None:
            text += f" in {in_words(self.n_documents, 'documents')}"
        return text if shown == len(self.components) else text + f"; the {shown} largest"


def _plane(components: Array) -> Array:
    """Topics on a plane, as far from each other as the roots of their probabilities are (Hellinger)."""
    roots = np.sqrt(components)
    if len(roots) < 3:
        return np.stack([np.arange(len(roots)), np.zeros(len(roots))], axis=1).astype(np.float64)
    start = PCA(2, random_state=0).fit_transform(roots)
    return smacof(squareform(pdist(roots)), init=start, n_init=1, normalized_stress=False)[0]
