"""Sums over the columns of one row and one centre, in vectors of LANES double-precision chains.

The rows may be single precision; every difference, product and sum is double. Each lane is one chain of
multiply-adds and the lanes are added in a fixed order, so the result does not depend on the machine's vectors.
"""

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from kfree.kernels.compiled.simd.llvm import CONTRACT, add_up, check_layout, fused, load, splat, sum_of_lanes

#: Columns looked at together; what is left over of a row is the caller's.
LANES = 8
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)


@intrinsic
def wide_distance(typingctx, X, i, shift, factor, mean, k, stop):
    """``sum_j ((X[i, j] - shift[j]) * factor - mean[k, j])**2`` for j below ``stop``, a positive multiple of LANES."""
    check_layout(X, i, shift, factor, mean, k, stop)

    def codegen(context, builder, signature, args):
        def term(x, centre, total):
            gap = builder.fsub(x, centre, flags=CONTRACT)
            return fused(builder, total, gap, gap)

        return _over_columns(context, builder, signature, args, term)

    return types.float64(X, types.int64, shift, types.float64, mean, types.int64, types.int64), codegen


@intrinsic
def wide_product(typingctx, X, i, shift, factor, coef, k, stop):
    """``sum_j (X[i, j] - shift[j]) * factor * coef[k, j]`` for j below ``stop``, a positive multiple of LANES."""
    check_layout(X, i, shift, factor, coef, k, stop)

    def codegen(context, builder, signature, args):
        def term(x, coefficient, total):
            return fused(builder, total, x, coefficient)

        return _over_columns(context, builder, signature, args, term)

    return types.float64(X, types.int64, shift, types.float64, coef, types.int64, types.int64), codegen


def _over_columns(context, builder, signature, args, term):
    """Sum of ``term`` over the columns of a shifted and scaled row beside a row of another matrix."""
    X, shift, other = (context.make_array(signature.args[a])(context, builder, args[a]) for a in (0, 2, 4))
    row = builder.gep(X.data, [builder.mul(args[1], builder.extract_value(X.shape, 1))])
    centre = builder.gep(other.data, [builder.mul(args[5], builder.extract_value(other.shape, 1))])
    factor, stop = splat(builder, args[3], _VECTOR), args[6]
    kind = ir.VectorType(row.type.pointee, LANES)

    def at(start, column, vector=_VECTOR):
        return load(builder, builder.gep(start, [column]), vector)

    def terms(column, totals):
        x = at(row, column, kind)
        x = builder.fsub(x if kind == _VECTOR else builder.fpext(x, _VECTOR), at(shift.data, column))
        return [term(builder.fmul(x, factor, flags=CONTRACT), at(centre, column), totals[0])]

    (total,) = add_up(builder, stop, LANES, [ir.Constant(_VECTOR, [0.0] * LANES)], terms)
    return sum_of_lanes(builder, total)
