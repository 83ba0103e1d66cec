"""Four rows of a matrix at a time, in vectors of 16 single-precision lanes.

The inner loops of a soft pass over topics: scalar products of four rows with one, and sums of rows with
coefficients. Four rows share every load of the fifth and hide the latency of the additions. Widths are multiples of
LANES. Each lane is one chain of multiply-adds, so a result does not depend on which rows are taken together.
"""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from kfree.kernels.compiled.simd.llvm import INTEGER, add_up, check_layout, fused, load, splat, sum_of_lanes

#: Columns are padded to a multiple of this.
LANES = 16
_VECTOR = ir.VectorType(ir.FloatType(), LANES)


def _as_vector(builder, pointer):
    return builder.bitcast(pointer, _VECTOR.as_pointer())


def _load(builder, pointer):
    return load(builder, pointer, _VECTOR)


def _store(builder, value, pointer):
    builder.store(value, _as_vector(builder, pointer)).align = 4


class _Rows:
    """Starts of some rows of a matrix, and the loop over their columns."""

    def __init__(self, context, builder, kind, value, indices):
        array = context.make_array(kind)(context, builder, value)
        self.builder, self.width = builder, builder.extract_value(array.shape, 1)
        self.starts = [builder.gep(array.data, [builder.mul(index, self.width)]) for index in indices]

    def at(self, column):
        return [self.builder.gep(start, [column]) for start in self.starts]


def _coefficients(context, builder, kind, value):
    array = context.make_array(kind)(context, builder, value)
    return [splat(builder, builder.load(builder.gep(array.data, [INTEGER(c)])), _VECTOR) for c in range(4)]


@intrinsic
def four_products(typingctx, matrix, rows, other, row, products):
    """``products[c] = <matrix[rows[c]], other[row]>`` for a tuple of four rows."""
    check_layout(matrix, rows, other, row, products)

    def codegen(context, builder, signature, args):
        four = _Rows(context, builder, signature.args[0], args[0], cgutils.unpack_tuple(builder, args[1], 4))
        one = _Rows(context, builder, signature.args[2], args[2], [args[3]])
        out = context.make_array(signature.args[4])(context, builder, args[4])

        def terms(column, totals):
            mine = _load(builder, one.at(column)[0])
            return [fused(builder, total, mine, _load(builder, at)) for total, at in zip(totals, four.at(column))]

        zero = ir.Constant(_VECTOR, [0.0] * LANES)
        for c, value in enumerate(add_up(builder, four.width, LANES, [zero] * 4, terms)):
            builder.store(sum_of_lanes(builder, value), builder.gep(out.data, [INTEGER(c)]))
        return context.get_dummy_value()

    return types.void(matrix, rows, other, types.int64, products), codegen


@intrinsic
def add_four_rows(typingctx, matrix, rows, coefficients, total):
    """``total += sum_c coefficients[c] * matrix[rows[c]]``, one after the other."""
    check_layout(matrix, rows, coefficients, total)

    def codegen(context, builder, signature, args):
        four = _Rows(context, builder, signature.args[0], args[0], cgutils.unpack_tuple(builder, args[1], 4))
        factors = _coefficients(context, builder, signature.args[2], args[2])
        out = context.make_array(signature.args[3])(context, builder, args[3])

        def add(column, _):
            place = builder.gep(out.data, [column])
            value = _load(builder, place)
            for factor, at in zip(factors, four.at(column)):
                value = fused(builder, value, factor, _load(builder, at))
            _store(builder, value, place)
            return []

        add_up(builder, four.width, LANES, [], add)
        return context.get_dummy_value()

    return types.void(matrix, rows, coefficients, total), codegen


@intrinsic
def add_to_four_rows(typingctx, matrix, row, coefficients, total, rows):
    """``total[rows[c]] += coefficients[c] * matrix[row]`` for a tuple of four rows, one after the other."""
    check_layout(matrix, row, coefficients, total, rows)

    def codegen(context, builder, signature, args):
        one = _Rows(context, builder, signature.args[0], args[0], [args[1]])
        factors = _coefficients(context, builder, signature.args[2], args[2])
        four = _Rows(context, builder, signature.args[3], args[3], cgutils.unpack_tuple(builder, args[4], 4))

        def add(column, _):
            value = _load(builder, one.at(column)[0])
            for factor, at in zip(factors, four.at(column)):
                _store(builder, fused(builder, _load(builder, at), factor, value), at)
            return []

        add_up(builder, one.width, LANES, [], add)
        return context.get_dummy_value()

    return types.void(matrix, types.int64, coefficients, total, rows), codegen


@intrinsic
def first_of_largest(typingctx, matrix, row, other, column):
    """The first p with the largest ``matrix[row, p] * other[column, p]``."""
    check_layout(matrix, row, other, column)

    def codegen(context, builder, signature, args):
        one = _Rows(context, builder, signature.args[0], args[0], [args[1]])
        two = _Rows(context, builder, signature.args[2], args[2], [args[3]])
        whole = ir.VectorType(ir.IntType(32), LANES)
        entry = builder.block
        loop, done = builder.append_basic_block("columns"), builder.append_basic_block("columns.done")
        builder.branch(loop)
        builder.position_at_end(loop)
        at, best, index, current = (builder.phi(kind) for kind in (INTEGER, _VECTOR, whole, whole))
        lanes = ir.Constant(whole, list(range(LANES)))
        starts = (INTEGER(0), ir.Constant(_VECTOR, [-1.0] * LANES), lanes, lanes)
        product = builder.fmul(_load(builder, one.at(at)[0]), _load(builder, two.at(at)[0]))
        more = builder.fcmp_ordered(">", product, best)
        values = (
            builder.add(at, INTEGER(LANES)),
            builder.select(more, product, best),
            builder.select(more, current, index),
            builder.add(current, ir.Constant(whole, [LANES] * LANES)),
        )
        for phi, start, value in zip((at, best, index, current), starts, values):
            phi.add_incoming(start, entry)
            phi.add_incoming(value, loop)
        builder.cbranch(builder.icmp_signed("<", values[0], one.width), loop, done)
        builder.position_at_end(done)
        return _first_of_lanes(builder, values[1], values[2])

    return types.int32(matrix, types.int64, other, types.int64), codegen


def _first_of_lanes(builder, best, index):
    """The index of the largest lane, the lowest of equals: halves against halves, without a branch."""
    half = best.type.count
    while half > 1:
        half //= 2
        kind = ir.VectorType(ir.IntType(32), half)
        masks = [ir.Constant(kind, list(range(start, start + half))) for start in (0, half)]
        low, high = (builder.shuffle_vector(best, best, mask) for mask in masks)
        first, second = (builder.shuffle_vector(index, index, mask) for mask in masks)
        lower = builder.and_(builder.fcmp_ordered("==", low, high), builder.icmp_signed("<", first, second))
        take = builder.or_(builder.fcmp_ordered(">", low, high), lower)
        best, index = builder.select(take, low, high), builder.select(take, first, second)
    return builder.extract_element(index, ir.Constant(ir.IntType(32), 0))
