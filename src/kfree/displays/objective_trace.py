"""ObjectiveTraceDisplay: how the objective fell, pass by pass."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kfree.displays.drawing import main_colour, make_axes, second_colour, set_title, short_number, tidy
from kfree.displays.palette import colours
from kfree.displays.reading import in_words

#: What estimators publish, by how it is called.
_TRACES = {
    "objective": "objective_trace_",
    "free energy": "free_energy_trace_",
    "log posterior": "log_posterior_trace_",
}


class ObjectiveTraceDisplay:
    """The objective after each pass; for samplers the log posterior after each sweep, a line for each chain.

    Made by :meth:`from_estimator`.

    Parameters
    ----------
    traces : list of arrays
        Values, one list for each chain.
    quantity : str, default="objective"
        What they are.
    converged : bool, default=True
    burn_in : int, default=0
        Sweeps that are not counted.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of Line2D
    burn_in_ : Polygon or None
        The sweeps that are not counted.

    Examples
    --------
    >>> import numpy as np
    >>> from kfree import DPMeans, ObjectiveTraceDisplay
    >>> X = np.array([[0.0], [0.2], [5.0], [5.2], [9.0]])
    >>> ObjectiveTraceDisplay.from_estimator(DPMeans(n_clusters=3).fit(X)).ax_.get_ylabel()
    'objective'
    """

    def __init__(self, *, traces, quantity="objective", converged=True, burn_in=0):
        self.traces = [np.asarray(trace, dtype=np.float64) for trace in traces]
        self.quantity = quantity
        self.converged = converged
        self.burn_in = burn_in

    @classmethod
    def from_estimator(cls, estimator, *, ax=None):
        """Draw the trace of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator of kfree
        ax : matplotlib Axes, default=None

        Returns
        -------
        ObjectiveTraceDisplay
        """
        check_is_fitted(estimator)
        found = next((pair for pair in _TRACES.items() if hasattr(estimator, pair[1])), None)
        if found is None:
            raise TypeError(f"{type(estimator).__name__} has no trace: none of {', '.join(_TRACES.values())}.")
        quantity, attribute = found
        traces = np.atleast_2d(getattr(estimator, attribute))
        burn_in = estimator.burn_in if quantity == "log posterior" else 0
        converged = bool(getattr(estimator, "converged_", True))
        return cls(traces=list(traces), quantity=quantity, converged=converged, burn_in=burn_in).plot(ax)

    def plot(self, ax=None):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to; new ones by default.

        Returns
        -------
        self
        """
        from matplotlib.ticker import MaxNLocator

        self.ax_ = ax = make_axes(ax)
        self.figure_ = ax.figure
        shades = [main_colour(ax)] if len(self.traces) == 1 else colours(len(self.traces))
        marker = "o" if max(map(len, self.traces)) <= 40 else ""
        self.lines_ = [
            ax.plot(np.arange(1, len(trace) + 1), trace, marker=marker, ms=4, lw=1.6 if marker else 1.0, color=shade)[0]
            for trace, shade in zip(self.traces, shades)
        ]
        self.burn_in_ = None
        if self.burn_in:
            self.burn_in_ = ax.axvspan(0.5, self.burn_in + 0.5, color=second_colour(), alpha=0.2, lw=0, zorder=0)
            self._look_at_the_rest()
        passes = "pass" if self.quantity != "log posterior" else "sweep (shaded: not counted)"
        ax.set(xlabel=passes, ylabel=self.quantity)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        tidy(ax)
        set_title(ax, self._title())
        return self

    def _look_at_the_rest(self) -> None:
        """Heights of what is counted: the first sweeps may be far below."""
        rest = np.concatenate([trace[self.burn_in :] for trace in self.traces])
        rest = rest[np.isfinite(rest)]
        if rest.size and rest.max() > rest.min():
            margin = 0.3 * (rest.max() - rest.min())
            self.ax_.set_ylim(rest.min() - 3 * margin, rest.max() + margin)

    def _title(self) -> str:
        name = self.quantity[0].upper() + self.quantity[1:]
        if self.quantity == "log posterior":
            agree = "agree" if self.converged else "do not agree yet"
            chains = in_words(len(self.traces), "chains")
            return f"{name} of {chains}" + (f", which {agree}" if len(self.traces) > 1 else "")
        first, last = self.traces[0][0], self.traces[0][-1]
        count = len(self.traces[0])
        ending = "" if self.converged else ", and could fall further"
        if count == 1:
            return f"{name} {short_number(last)} after 1 pass{ending}"
        return f"{name} fell from {short_number(first)} to {short_number(last)} in {count} passes{ending}"
