"""Rows laid out as the register tile reads them: a row in each lane, columns outside.

Four rows are turned at a time, four columns, then two, then one: a transposition in registers, where a scalar loop
stores every entry on its own.
"""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from kfree.kernels.compiled.cache import njit
from kfree.kernels.compiled.simd.llvm import INTEGER, check_layout, load, splat

_ROWS = 4
_DOUBLE = ir.DoubleType()


@intrinsic
def _four_rows(typingctx, X, rows, first, shift, scale, tile, lane):
    """``tile[j, lane + r] = (X[i, j] - shift[j]) * scale[i]`` for i = ``rows[first + r]``, r below 4, computed in
    double precision. ``scale`` may be None."""
    check_layout(X, rows, first, shift, scale, tile, lane)
    real = ir.FloatType() if tile.dtype.bitwidth == 32 else _DOUBLE

    def codegen(context, builder, signature, args):
        def array(a):
            return context.make_array(signature.args[a])(context, builder, args[a])

        table, index, shifts, out = array(0), array(1).data, array(3).data, array(5)
        p, lanes = builder.extract_value(table.shape, 1), builder.extract_value(out.shape, 1)
        chosen = [builder.load(builder.gep(index, [builder.add(args[2], INTEGER(r))])) for r in range(_ROWS)]
        starts = [builder.gep(table.data, [builder.mul(i, p)]) for i in chosen]
        scaled = isinstance(signature.args[4], types.Array)
        factors = [builder.load(builder.gep(array(4).data, [i])) for i in chosen] if scaled else []
        given = starts[0].type.pointee

        def turn(column, width):
            double = ir.VectorType(_DOUBLE, width)
            less = load(builder, builder.gep(shifts, [column]), double)
            lines = []
            for r, start in enumerate(starts):
                line = load(builder, builder.gep(start, [column]), ir.VectorType(given, width))
                line = builder.fsub(line if given == _DOUBLE else builder.fpext(line, double), less)
                line = builder.fmul(line, splat(builder, factors[r], double)) if scaled else line
                lines.append(line if real == _DOUBLE else builder.fptrunc(line, ir.VectorType(real, width)))
            halves = [_shuffled(builder, lines[r], lines[r + 1], range(2 * width)) for r in (0, 2)]
            for c in range(width):
                lane = _shuffled(builder, halves[0], halves[1], [c + r * width for r in range(_ROWS)])
                place = builder.add(builder.mul(builder.add(column, INTEGER(c)), lanes), args[6])
                place = builder.bitcast(builder.gep(out.data, [place]), lane.type.as_pointer())
                builder.store(lane, place).align = 4

        whole = builder.and_(p, INTEGER(-4))
        with cgutils.for_range_slice(builder, INTEGER(0), whole, INTEGER(4), intp=INTEGER) as (column, _):
            turn(column, 4)
        for column, width in ((whole, 2), (builder.and_(p, INTEGER(-2)), 1)):
            with builder.if_then(builder.icmp_signed("!=", builder.and_(p, INTEGER(width)), INTEGER(0))):
                turn(column, width)
        return context.get_dummy_value()

    return types.void(X, rows, types.int64, shift, scale, tile, types.int64), codegen


def _shuffled(builder, a, b, lanes):
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), list(lanes))
    return builder.shuffle_vector(a, b, mask)


@njit(nogil=True, cache=True)
def pack(X, rows, shift, scale, tiles):
    """Fill ``tiles`` (T, p, lanes) with shifted and scaled rows; lanes beyond the last row are left as they are."""
    n, lanes = rows.shape[0], tiles.shape[2]
    for b in range(n // lanes):
        if scale.shape[0]:
            for r in range(0, lanes, 4):
                _four_rows(X, rows, b * lanes + r, shift, scale, tiles[b], r)  # type: ignore[call-arg]
        else:
            for r in range(0, lanes, 4):
                _four_rows(X, rows, b * lanes + r, shift, None, tiles[b], r)  # type: ignore[call-arg]
    for t in range(n - n % lanes, n):
        i = rows[t]
        factor = scale[i] if scale.shape[0] else 1.0
        for j in range(X.shape[1]):
            tiles[n // lanes, j, t % lanes] = (X[i, j] - shift[j]) * factor
