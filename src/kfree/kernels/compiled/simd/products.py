"""Products of rows of double precision, spelled out in LLVM vectors so that their sums stay in registers."""

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from kfree.kernels.compiled.simd.llvm import CONTRACT, INTEGER, add_up, check_layout, fused, load, splat

#: Rows that are whitened side by side.
LANES = 16
_PARTS = 4
_VECTOR = ir.VectorType(ir.DoubleType(), LANES // _PARTS)
_ZERO = ir.Constant(_VECTOR, [0.0] * _VECTOR.count)
#: Columns of the tile of products that ``add_products`` holds: of the one factor, and of the other.
TALL, BROAD = 4, 8


def _places(builder, pointer, index):
    """Where the parts of LANES values from ``index`` on are."""
    start = builder.gep(pointer, [index])
    return [builder.gep(start, [INTEGER(_VECTOR.count * v)]) for v in range(_PARTS)]


def _data(context, builder, signature, args, which):
    return [context.make_array(signature.args[i])(context, builder, args[i]).data for i in which]


def _two_products(context, builder, signature, args, columns=None):
    """Products of the rows ``args[0]`` with rows ``args[2]`` and the next of the matrix ``args[1]``, over so many
    columns, or all."""
    rows, matrix = _data(context, builder, signature, args, (0, 1))
    width = builder.extract_value(context.make_array(signature.args[1])(context, builder, args[1]).shape, 1)
    first = builder.mul(args[2], width)
    starts = [first, builder.add(first, width)]

    def terms(column, totals):
        entries = [builder.load(builder.gep(matrix, [builder.add(at, column)])) for at in starts]
        mine = [load(builder, at, _VECTOR) for at in _places(builder, rows, builder.mul(column, INTEGER(LANES)))]
        pairs = [(splat(builder, entry, _VECTOR), value) for entry in entries for value in mine]
        return [fused(builder, total, *pair) for total, pair in zip(totals, pairs)]

    sums = add_up(builder, width if columns is None else columns, 1, [_ZERO] * (2 * _PARTS), terms)
    return sums[:_PARTS], sums[_PARTS:]


def _any_above(builder, values, least):
    """Whether any value is above its limit."""
    alive = None
    for value, at in zip(values, _places(builder, least, INTEGER(0))):
        above = builder.fcmp_ordered(">", value, load(builder, at, _VECTOR))
        alive = above if alive is None else builder.or_(alive, above)
    bits = builder.bitcast(alive, ir.IntType(_VECTOR.count))
    return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))


def _less_half(builder, value, square):
    half = ir.Constant(_VECTOR, [0.5] * _VECTOR.count)
    return builder.fsub(value, builder.fmul(half, square, flags=CONTRACT), flags=CONTRACT)


@intrinsic
def lower_scores(typingctx, gap, lower, first, scores, least):
    """``scores -= (y_e^2 + y_(e+1)^2) / 2`` for ``y = lower @ gap``, a lower triangle, and e = ``first``, which is
    even; whether any score is above ``least`` after that. ``gap`` (D, LANES) has a row in each lane; D is even."""
    check_layout(gap, lower, first, scores, least)

    def codegen(context, builder, signature, args):
        columns = builder.add(args[2], INTEGER(2))
        total, limit = _data(context, builder, signature, args, (3, 4))
        values = []
        for place, one, two in zip(
            _places(builder, total, INTEGER(0)), *_two_products(context, builder, signature, args, columns)
        ):
            square = fused(builder, builder.fmul(one, one), two, two)
            values.append(_less_half(builder, load(builder, place, _VECTOR), square))
            builder.store(values[-1], builder.bitcast(place, _VECTOR.as_pointer())).align = 8
        return _any_above(builder, values, limit)

    return types.boolean(gap, lower, types.int64, scores, least), codegen


@intrinsic
def above_along(typingctx, gap, directions, first, shift, height, least):
    """For k = ``first`` and the next: whether any of ``height[k] - (<directions[k], gap> + shift[k])^2 / 2`` is above
    ``least``; the answers as bits 1 and 2."""
    check_layout(gap, directions, first, shift, height, least)

    def codegen(context, builder, signature, args):
        shifts, heights, limit = _data(context, builder, signature, args, (3, 4, 5))
        answer = INTEGER(0)
        for k, products in enumerate(_two_products(context, builder, signature, args)):
            at = builder.add(args[2], INTEGER(k))
            move, top = (splat(builder, builder.load(builder.gep(a, [at])), _VECTOR) for a in (shifts, heights))
            along = [builder.fadd(product, move) for product in products]
            values = [_less_half(builder, top, builder.fmul(value, value, flags=CONTRACT)) for value in along]
            bit = builder.zext(_any_above(builder, values, limit), INTEGER)
            answer = builder.or_(answer, builder.shl(bit, INTEGER(k)))
        return answer

    return types.int64(gap, directions, types.int64, shift, height, least), codegen


@intrinsic
def add_products(typingctx, rows, first, second, total):
    """``total[a, b] += sum_i rows[i, a] rows[i, b]`` for TALL columns a from ``first`` and BROAD columns b from
    ``second`` on."""
    check_layout(rows, first, second, total)

    def codegen(context, builder, signature, args):
        table = context.make_array(signature.args[0])(context, builder, args[0])
        out = context.make_array(signature.args[3])(context, builder, args[3])
        count, width = (builder.extract_value(table.shape, i) for i in (0, 1))
        parts = BROAD // _VECTOR.count

        def vectors(pointer):
            return [builder.gep(pointer, [INTEGER(_VECTOR.count * v)]) for v in range(parts)]

        def terms(row, totals):
            start = builder.gep(table.data, [builder.mul(row, width)])
            one, two = (builder.gep(start, [column]) for column in (args[1], args[2]))
            factors = [splat(builder, builder.load(builder.gep(one, [INTEGER(a)])), _VECTOR) for a in range(TALL)]
            values = [load(builder, at, _VECTOR) for at in vectors(two)]
            pairs = [(factor, value) for factor in factors for value in values]
            return [fused(builder, total, *pair) for total, pair in zip(totals, pairs)]

        sums = add_up(builder, count, 1, [_ZERO] * (TALL * parts), terms)
        wide = builder.extract_value(out.shape, 1)
        for a in range(TALL):
            start = builder.mul(builder.add(args[1], INTEGER(a)), wide)
            for v, place in enumerate(vectors(builder.gep(out.data, [builder.add(start, args[2])]))):
                value = builder.fadd(load(builder, place, _VECTOR), sums[a * parts + v])
                builder.store(value, builder.bitcast(place, _VECTOR.as_pointer())).align = 8
        return context.get_dummy_value()

    return types.void(rows, types.int64, types.int64, total), codegen
