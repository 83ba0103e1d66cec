"""Four rows of a matrix at a time, in vectors of 16 single-precision lanes.

The inner loops of a soft pass over topics: scalar products of four rows with one, and sums of rows with
coefficients. Four rows share every load of the fifth and hide the latency of the additions. Widths are multiples of
LANES. Each lane is one chain of multiply-adds, so a result does not depend on which rows are taken together.
After a change here save ``soft.py`` too: numba's cache looks at the file of the kernel only.
"""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

#: Columns are padded to a multiple of this.
LANES = 16
_INTEGER = ir.IntType(64)
_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_CONTRACT = ("contract",)


def _as_vector(builder, pointer):
    return builder.bitcast(pointer, _VECTOR.as_pointer())


def _load(builder, pointer):
    value = builder.load(_as_vector(builder, pointer))
    value.align = 4
    return value


def _store(builder, value, pointer):
    builder.store(value, _as_vector(builder, pointer)).align = 4


def _splat(builder, scalar):
    empty = ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(empty, scalar, ir.Constant(ir.IntType(32), 0))
    lane_zero = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(first, empty, lane_zero)


def _sum_of_lanes(builder, vector):
    """Halves added to halves: a fixed order."""
    half = LANES
    while half > 1:
        half //= 2
        kind = ir.VectorType(ir.IntType(32), half)
        low = builder.shuffle_vector(vector, vector, ir.Constant(kind, list(range(half))))
        high = builder.shuffle_vector(vector, vector, ir.Constant(kind, list(range(half, 2 * half))))
        vector = builder.fadd(low, high)
    return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))


class _Rows:
    """Starts of some rows of a matrix, and the loop over their columns."""

    def __init__(self, context, builder, kind, value, indices):
        array = context.make_array(kind)(context, builder, value)
        self.builder, self.width = builder, builder.extract_value(array.shape, 1)
        self.starts = [builder.gep(array.data, [builder.mul(index, self.width)]) for index in indices]

    def at(self, column):
        return [self.builder.gep(start, [column]) for start in self.starts]


def _columns(builder, width, sums):
    """Open a loop over the columns; returns the column, accumulators from zero, and what closes the loop."""
    entry = builder.block
    loop, done = builder.append_basic_block("columns"), builder.append_basic_block("columns.done")
    builder.branch(loop)
    builder.position_at_end(loop)
    column = builder.phi(_INTEGER)
    column.add_incoming(_INTEGER(0), entry)
    totals = [builder.phi(_VECTOR) for _ in range(sums)]
    for total in totals:
        total.add_incoming(ir.Constant(_VECTOR, [0.0] * LANES), entry)

    def close(values):
        for total, value in zip(totals, values):
            total.add_incoming(value, loop)
        following = builder.add(column, _INTEGER(LANES))
        column.add_incoming(following, loop)
        builder.cbranch(builder.icmp_signed("<", following, width), loop, done)
        builder.position_at_end(done)

    return column, totals, close


def _fused(builder, total, a, b):
    return builder.fadd(total, builder.fmul(a, b, flags=_CONTRACT), flags=_CONTRACT)


def _coefficients(context, builder, kind, value):
    array = context.make_array(kind)(context, builder, value)
    return [_splat(builder, builder.load(builder.gep(array.data, [_INTEGER(c)]))) for c in range(4)]


@intrinsic
def four_products(typingctx, matrix, rows, other, row, products):
    """``products[c] = <matrix[rows[c]], other[row]>`` for a tuple of four rows."""

    def codegen(context, builder, signature, args):
        four = _Rows(context, builder, signature.args[0], args[0], cgutils.unpack_tuple(builder, args[1], 4))
        one = _Rows(context, builder, signature.args[2], args[2], [args[3]])
        out = context.make_array(signature.args[4])(context, builder, args[4])
        column, totals, close = _columns(builder, four.width, 4)
        mine = _load(builder, one.at(column)[0])
        sums = [_fused(builder, total, mine, _load(builder, at)) for total, at in zip(totals, four.at(column))]
        close(sums)
        for c, value in enumerate(sums):
            builder.store(_sum_of_lanes(builder, value), builder.gep(out.data, [_INTEGER(c)]))
        return context.get_dummy_value()

    return types.void(matrix, rows, other, types.int64, products), codegen


@intrinsic
def add_four_rows(typingctx, matrix, rows, coefficients, total):
    """``total += sum_c coefficients[c] * matrix[rows[c]]``, one after the other."""

    def codegen(context, builder, signature, args):
        four = _Rows(context, builder, signature.args[0], args[0], cgutils.unpack_tuple(builder, args[1], 4))
        factors = _coefficients(context, builder, signature.args[2], args[2])
        out = context.make_array(signature.args[3])(context, builder, args[3])
        column, _, close = _columns(builder, four.width, 0)
        place = builder.gep(out.data, [column])
        value = _load(builder, place)
        for factor, at in zip(factors, four.at(column)):
            value = _fused(builder, value, factor, _load(builder, at))
        _store(builder, value, place)
        close([])
        return context.get_dummy_value()

    return types.void(matrix, rows, coefficients, total), codegen


@intrinsic
def add_to_four_rows(typingctx, matrix, row, coefficients, total, rows):
    """``total[rows[c]] += coefficients[c] * matrix[row]`` for a tuple of four rows, one after the other."""

    def codegen(context, builder, signature, args):
        one = _Rows(context, builder, signature.args[0], args[0], [args[1]])
        factors = _coefficients(context, builder, signature.args[2], args[2])
        four = _Rows(context, builder, signature.args[3], args[3], cgutils.unpack_tuple(builder, args[4], 4))
        column, _, close = _columns(builder, one.width, 0)
        value = _load(builder, one.at(column)[0])
        for factor, at in zip(factors, four.at(column)):
            _store(builder, _fused(builder, _load(builder, at), factor, value), at)
        close([])
        return context.get_dummy_value()

    return types.void(matrix, types.int64, coefficients, total, rows), codegen


@intrinsic
def largest_in_lanes(typingctx, matrix, row, other, column, largest, first):
    """For each lane c the largest of ``matrix[row, p] * other[column, p]``, p = c, c + LANES, ..., and its first p."""

    def codegen(context, builder, signature, args):
        one = _Rows(context, builder, signature.args[0], args[0], [args[1]])
        two = _Rows(context, builder, signature.args[2], args[2], [args[3]])
        top, where = (context.make_array(signature.args[i])(context, builder, args[i]) for i in (4, 5))
        whole = ir.VectorType(ir.IntType(32), LANES)
        entry = builder.block
        loop, done = builder.append_basic_block("columns"), builder.append_basic_block("columns.done")
        builder.branch(loop)
        builder.position_at_end(loop)
        at, best, index, current = (builder.phi(kind) for kind in (_INTEGER, _VECTOR, whole, whole))
        lanes = ir.Constant(whole, list(range(LANES)))
        starts = (_INTEGER(0), ir.Constant(_VECTOR, [-1.0] * LANES), lanes, lanes)
        product = builder.fmul(_load(builder, one.at(at)[0]), _load(builder, two.at(at)[0]))
        more = builder.fcmp_ordered(">", product, best)
        values = (
            builder.add(at, _INTEGER(LANES)),
            builder.select(more, product, best),
            builder.select(more, current, index),
            builder.add(current, ir.Constant(whole, [LANES] * LANES)),
        )
        for phi, start, value in zip((at, best, index, current), starts, values):
            phi.add_incoming(start, entry)
            phi.add_incoming(value, loop)
        builder.cbranch(builder.icmp_signed("<", values[0], one.width), loop, done)
        builder.position_at_end(done)
        _store(builder, values[1], top.data)
        builder.store(values[2], builder.bitcast(where.data, whole.as_pointer())).align = 4
        return context.get_dummy_value()

    return types.void(matrix, types.int64, other, types.int64, largest, first), codegen
