"""Gains of several seed topics at once."""


def gain_of_seeds(data, indices, indptr, first, last, values, gain):
    """``gain[j] = sum_w data[j, w] * values[w]`` of some documents; ``values`` (V, 8) and ``gain`` in float32."""
    for j in range(first, last):
        cells = slice(indptr[j], indptr[j + 1])
        gain[j] = data[cells] @ values[indices[cells]]
