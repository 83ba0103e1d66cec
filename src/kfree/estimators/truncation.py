"""How many components of a Dirichlet process leave little behind."""

from kfree.inference.embedding.embedding_numbers import EMBEDDING
from kfree.models.parameters import Choice, Number, Table, check_parameters
from kfree.structures import KINDS, enough_pieces

_PARAMETERS: Table = {
    "concentration": Number(above=0.0, most=EMBEDDING.most_concentration, finite=True),
    "delta": Number(above=0.0, finite=True),
    "kind": Choice(*KINDS),
    "chance": Number(above=0.0),
    "bound": Number(above=0.0, finite=True),
}


def truncation_level(concentration, delta, kind="mean", *, chance=0.05, bound=1.0) -> int:
    r"""How many components of a Dirichlet process leave little behind.

    After T pieces of the stick :math:`\tau_T = e^{-G / \alpha}`, :math:`G \sim Gamma(T, 1)`, is left, and the kernel
    mean of what is cut off has a squared norm of at most ``bound`` :math:`\tau_T^2`. Theorem 2 of [1]_ has
    :math:`e^{-T / \alpha}` in place of it, which is its typical size, not a bound.

    Parameters
    ----------
    concentration : float
        :math:`\alpha`. Larger needs more components.
    delta : float
        What the squared norm may be.
    kind : {"mean", "probability", "typical"}, default="mean"
        What is at most delta: the mean of the bound, the bound except with probability ``chance``, or its typical size
        (geometric mean), as in [1]_.
    chance : float, default=0.05
        For "probability".
    bound : float, default=1.0
        Largest value of the kernel; twice that if the weights of the T components are made to sum to one.

    Returns
    -------
    int

    References
    ----------
    .. [1] Muandet (2012), Hilbert space embedding for Dirichlet process mixtures.

    Examples
    --------
    >>> from kfree import truncation_level
    >>> truncation_level(1.0, 1e-6), truncation_level(1.0, 1e-6, "probability"), truncation_level(1.0, 1e-6, "typical")
    (13, 12, 7)
    """
    given = {"concentration": concentration, "delta": delta, "bound": bound, "kind": kind, "chance": chance}
    check_parameters(_PARAMETERS, given)
    if not chance < 1:
        raise ValueError(f"chance must be below 1, got {chance!r}.")
    return enough_pieces(float(concentration), float(bound) / float(delta), kind, float(chance))
