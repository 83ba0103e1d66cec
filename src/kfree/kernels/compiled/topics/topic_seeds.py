"""Gains of several seed topics at once, in vectors of eight single-precision lanes."""

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from kfree.kernels.compiled.cache import njit
from kfree.kernels.compiled.simd.llvm import INTEGER, add_up, fused, load, splat

_LANES = 8
_VECTOR = ir.VectorType(ir.FloatType(), _LANES)


@intrinsic
def _add_cells(typingctx, data, indices, start, count, values, gain, row):
    """``gain[row] = sum of data[k] * values[indices[k]]`` over ``count`` > 0 cells."""

    def codegen(context, builder, signature, args):
        def array(i):
            return context.make_array(signature.args[i])(context, builder, args[i])

        tokens, words, table, out = array(0), array(1), array(4), array(5)

        def terms(place, totals):
            k = builder.add(args[2], place)
            word = builder.sext(builder.load(builder.gep(words.data, [k])), INTEGER)
            values = load(builder, builder.gep(table.data, [builder.mul(word, INTEGER(_LANES))]), _VECTOR)
            token = builder.fptrunc(builder.load(builder.gep(tokens.data, [k])), ir.FloatType())
            return [fused(builder, totals[0], splat(builder, token, _VECTOR), values)]

        total = add_up(builder, args[3], 1, [ir.Constant(_VECTOR, [0.0] * _LANES)], terms)[0]
        place = builder.gep(out.data, [builder.mul(args[6], INTEGER(_LANES))])
        builder.store(total, builder.bitcast(place, _VECTOR.as_pointer())).align = 4
        return context.get_dummy_value()

    return types.void(data, indices, types.int64, types.int64, values, gain, types.int64), codegen


@njit(nogil=True, cache=True)
def gain_of_seeds(data, indices, indptr, first, last, values, gain):  # noqa: D103
    for j in range(first, last):
        start, count = indptr[j], indptr[j + 1] - indptr[j]
        if count > 0:
            _add_cells(data, indices, start, count, values, gain, j)  # type: ignore[call-arg]
        else:
            gain[j] = np.float32(0.0)
