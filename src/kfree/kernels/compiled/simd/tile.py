"""The register tile of a matrix product, fused with the search for the two least entries of each row.

numba turns scalar loops into vector code only where the loop is simple; a product that keeps its accumulators in
registers is not. So the innermost tile is spelled out in LLVM vectors of 64 bytes: one vector of rows (8 double,
16 single) against GROUP centres at a time. LLVM splits the vectors where the machine has narrower ones.
Each entry is one chain of multiply-adds over the columns: the result does not depend on block or position.
"""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from kfree.kernels.compiled.simd.llvm import CONTRACT, check_layout, load, splat

#: Centres that share one load of a row vector: their products and what is least so far fit in 16 registers of half a
#: vector each, and 8 chains of multiply-adds are what it takes to keep two units busy.
GROUP = 4
#: Bytes of a vector of rows.
WIDTH = 64


@intrinsic
def two_least(typingctx, rows, panels, offset, start, labels, least, second):
    """Least, second least and index of the least of ``offset[k] - <row, coef[k]>`` for one vector of rows.

    ``rows`` (p, R) one row per lane; ``panels`` (P, p, GROUP) centres in groups; ``offset`` (P, GROUP), +inf for
    padding. Fills R entries of ``labels`` (int32), ``least`` and ``second`` (float64) from ``start`` on.
    A tie goes to the lower index.
    """
    check_layout(rows, panels, offset, start, labels, least, second)
    size = rows.dtype.bitwidth // 8
    lanes = WIDTH // size
    real = ir.FloatType() if size == 4 else ir.DoubleType()
    vector = ir.VectorType(real, lanes)
    integer = ir.IntType(64)

    def codegen(context, builder, signature, args):
        row_array, panel_array, offset_array, label_array, least_array, second_array = (
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(signature.args, args)
            if isinstance(kind, types.Array)
        )
        first_row = args[3]
        n_panels, n_columns, _ = cgutils.unpack_tuple(builder, panel_array.shape, 3)

        def const(value):
            return ir.Constant(integer, value)

        def scalar_at(array, index):
            return splat(builder, builder.load(builder.gep(array.data, [index])), vector)

        def vector_at(array, index):
            return builder.bitcast(builder.gep(array.data, [index]), vector.as_pointer())

        everywhere = ir.Constant(vector, [float("inf")] * lanes)
        zero = ir.Constant(vector, [0.0] * lanes)
        entry = builder.block
        panel_block = builder.append_basic_block("panel")
        column_block = builder.append_basic_block("column")
        reduce_block = builder.append_basic_block("reduce")
        done_block = builder.append_basic_block("done")
        builder.branch(panel_block)

        builder.position_at_end(panel_block)
        panel = builder.phi(integer)
        best, runner_up, index = builder.phi(vector), builder.phi(vector), builder.phi(vector)
        panel.add_incoming(const(0), entry)
        for phi, value in ((best, everywhere), (runner_up, everywhere), (index, zero)):
            phi.add_incoming(value, entry)
        first_centre = builder.mul(panel, const(GROUP))
        offsets = [scalar_at(offset_array, builder.add(first_centre, const(g))) for g in range(GROUP)]
        panel_start = builder.mul(first_centre, n_columns)
        builder.branch(column_block)

        builder.position_at_end(column_block)
        column = builder.phi(integer)
        column.add_incoming(const(0), panel_block)
        sums = [builder.phi(vector) for _ in range(GROUP)]
        for total, value in zip(sums, offsets):
            total.add_incoming(value, panel_block)
        row = load(builder, vector_at(row_array, builder.mul(column, const(lanes))), vector)
        coef_start = builder.add(panel_start, builder.mul(column, const(GROUP)))
        costs = []
        for g in range(GROUP):
            product = builder.fmul(row, scalar_at(panel_array, builder.add(coef_start, const(g))), flags=CONTRACT)
            costs.append(builder.fsub(sums[g], product, flags=CONTRACT))
            sums[g].add_incoming(costs[g], column_block)
        next_column = builder.add(column, const(1))
        column.add_incoming(next_column, column_block)
        builder.cbranch(builder.icmp_signed("<", next_column, n_columns), column_block, reduce_block)

        builder.position_at_end(reduce_block)
        low, low2, arg = best, runner_up, index
        centre = builder.sitofp(first_centre, real)
        for g, cost in enumerate(costs):
            less = builder.fcmp_ordered("<", cost, low)
            loser = builder.select(less, low, cost)
            low2 = builder.select(builder.fcmp_ordered("<", loser, low2), loser, low2)
            low = builder.select(less, cost, low)
            # the index travels as a float of the same width: exact below 2**24 centres
            arg = builder.select(less, splat(builder, builder.fadd(centre, ir.Constant(real, float(g))), vector), arg)
        next_panel = builder.add(panel, const(1))
        panel.add_incoming(next_panel, reduce_block)
        for phi, value in ((best, low), (runner_up, low2), (index, arg)):
            phi.add_incoming(value, reduce_block)
        builder.cbranch(builder.icmp_signed("<", next_panel, n_panels), panel_block, done_block)

        builder.position_at_end(done_block)
        for array, value in ((least_array, low), (second_array, low2)):
            wide = ir.VectorType(ir.DoubleType(), lanes)
            value = builder.fpext(value, wide) if size == 4 else value
            place = builder.bitcast(builder.gep(array.data, [first_row]), wide.as_pointer())
            builder.store(value, place).align = 8
        whole = ir.VectorType(ir.IntType(32), lanes)
        place = builder.bitcast(builder.gep(label_array.data, [first_row]), whole.as_pointer())
        builder.store(builder.fptosi(arg, whole), place).align = 4
        return context.get_dummy_value()

    return types.void(rows, panels, offset, types.int64, labels, least, second), codegen


#: Vectors of centres that one pass over a sparse row keeps in registers; their number is a multiple of it.
STRIP = 4


@intrinsic
def sparse_costs(typingctx, data, indices, first, last, factor, coef_t, offset, centre, costs):
    """``offset[k] - factor * <row, coef_t[:, k]>`` for one sparse row and STRIP vectors of centres k from ``centre``.

    ``coef_t`` (p, K) has columns outside; entries ``first`` to ``last`` of ``data`` and ``indices`` are the row.
    Fills ``costs`` (STRIP * lanes,).
    """
    check_layout(data, indices, first, last, factor, coef_t, offset, centre, costs)
    size = coef_t.dtype.bitwidth // 8
    lanes = WIDTH // size
    real = ir.FloatType() if size == 4 else ir.DoubleType()
    vector = ir.VectorType(real, lanes)
    integer = ir.IntType(64)

    def codegen(context, builder, signature, args):
        data_array, index_array, coef_array, offset_array, cost_array = (
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(signature.args, args)
            if isinstance(kind, types.Array)
        )
        start, stop, scale, first_centre = args[2], args[3], args[4], args[7]
        _, n_centres = cgutils.unpack_tuple(builder, coef_array.shape, 2)

        def vectors_at(array, index):
            return [
                builder.bitcast(builder.gep(array.data, [builder.add(index, integer(v * lanes))]), vector.as_pointer())
                for v in range(STRIP)
            ]

        starts = [load(builder, pointer, vector) for pointer in vectors_at(offset_array, first_centre)]
        entry = builder.block
        test_block = builder.append_basic_block("test")
        entry_block = builder.append_basic_block("entry")
        done_block = builder.append_basic_block("done")
        builder.branch(test_block)

        builder.position_at_end(test_block)
        position = builder.phi(integer)
        position.add_incoming(start, entry)
        sums = [builder.phi(vector) for _ in range(STRIP)]
        for total, value in zip(sums, starts):
            total.add_incoming(value, entry)
        builder.cbranch(builder.icmp_signed("<", position, stop), entry_block, done_block)

        builder.position_at_end(entry_block)
        value = builder.load(builder.gep(data_array.data, [position]))
        value = builder.fpext(value, ir.DoubleType()) if value.type == ir.FloatType() else value
        value = builder.fmul(value, scale)
        value = builder.fptrunc(value, real) if size == 4 else value
        column = builder.load(builder.gep(index_array.data, [position]))
        column = builder.sext(column, integer) if column.type != integer else column
        value = splat(builder, value, vector)
        line = builder.add(builder.mul(column, n_centres), first_centre)
        for total, pointer in zip(sums, vectors_at(coef_array, line)):
            product = builder.fmul(value, load(builder, pointer, vector), flags=CONTRACT)
            total.add_incoming(builder.fsub(total, product, flags=CONTRACT), entry_block)
        position.add_incoming(builder.add(position, integer(1)), entry_block)
        builder.branch(test_block)

        builder.position_at_end(done_block)
        for total, pointer in zip(sums, vectors_at(cost_array, integer(0))):
            builder.store(total, pointer).align = size
        return context.get_dummy_value()

    scalars = (types.int64, types.int64, types.float64)
    return types.void(data, indices, *scalars, coef_t, offset, types.int64, costs), codegen
