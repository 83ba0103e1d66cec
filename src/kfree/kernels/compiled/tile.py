"""The register tile of a matrix product, fused with the search for the two least entries of each row.

numba turns scalar loops into vector code only where the loop is simple; a product that keeps its accumulators in
registers is not. So the innermost tile is spelled out in LLVM vectors of 64 bytes: one vector of rows (8 double,
16 single) against GROUP centres at a time. LLVM splits the vectors where the machine has narrower ones.
Each entry is one chain of multiply-adds over the columns: the result does not depend on block or position.
After a change here save ``nearest.py`` too: numba's cache looks at the file of the kernel only.
"""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

#: Centres that share one load of a row vector: with 2 x 6 accumulators, the row and a broadcast, 16 registers are full.
GROUP = 6
#: Bytes of a vector of rows.
WIDTH = 64


@intrinsic
def two_least(typingctx, rows, panels, offset, out):
    """Least, second least and index of the least of ``offset[k] - <row, coef[k]>`` for one vector of rows.

    ``rows`` (p, R) one row per lane; ``panels`` (P, p, GROUP) centres in groups; ``offset`` (P, GROUP), +inf for
    padding; ``out`` (3, R). A tie goes to the lower index.
    """
    size = rows.dtype.bitwidth // 8
    lanes = WIDTH // size
    real = ir.FloatType() if size == 4 else ir.DoubleType()
    vector = ir.VectorType(real, lanes)
    integer = ir.IntType(64)
    contract = ("contract",)

    def codegen(context, builder, signature, args):
        row_array, panel_array, offset_array, out_array = (
            context.make_array(kind)(context, builder, value) for kind, value in zip(signature.args, args)
        )
        n_panels, n_columns, _ = cgutils.unpack_tuple(builder, panel_array.shape, 3)

        def const(value):
            return ir.Constant(integer, value)

        def splat(scalar):
            empty = ir.Constant(vector, ir.Undefined)
            first = builder.insert_element(empty, scalar, ir.Constant(ir.IntType(32), 0))
            lane_zero = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
            return builder.shuffle_vector(first, empty, lane_zero)

        def scalar_at(array, index):
            return splat(builder.load(builder.gep(array.data, [index])))

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
        least, second, index = builder.phi(vector), builder.phi(vector), builder.phi(vector)
        panel.add_incoming(const(0), entry)
        for phi, start in ((least, everywhere), (second, everywhere), (index, zero)):
            phi.add_incoming(start, entry)
        first_centre = builder.mul(panel, const(GROUP))
        offsets = [scalar_at(offset_array, builder.add(first_centre, const(g))) for g in range(GROUP)]
        panel_start = builder.mul(first_centre, n_columns)
        builder.branch(column_block)

        builder.position_at_end(column_block)
        column = builder.phi(integer)
        column.add_incoming(const(0), panel_block)
        sums = [builder.phi(vector) for _ in range(GROUP)]
        for total, start in zip(sums, offsets):
            total.add_incoming(start, panel_block)
        row = builder.load(vector_at(row_array, builder.mul(column, const(lanes))))
        row.align = size
        coef_start = builder.add(panel_start, builder.mul(column, const(GROUP)))
        costs = []
        for g in range(GROUP):
            product = builder.fmul(row, scalar_at(panel_array, builder.add(coef_start, const(g))), flags=contract)
            costs.append(builder.fsub(sums[g], product, flags=contract))
            sums[g].add_incoming(costs[g], column_block)
        next_column = builder.add(column, const(1))
        column.add_incoming(next_column, column_block)
        builder.cbranch(builder.icmp_signed("<", next_column, n_columns), column_block, reduce_block)

        builder.position_at_end(reduce_block)
        low, low2, arg = least, second, index
        centre = builder.sitofp(first_centre, real)
        for g, cost in enumerate(costs):
            less = builder.fcmp_ordered("<", cost, low)
            loser = builder.select(less, low, cost)
            low2 = builder.select(builder.fcmp_ordered("<", loser, low2), loser, low2)
            low = builder.select(less, cost, low)
            # the index travels as a float of the same width: exact below 2**24 centres
            arg = builder.select(less, splat(builder.fadd(centre, ir.Constant(real, float(g)))), arg)
        next_panel = builder.add(panel, const(1))
        panel.add_incoming(next_panel, reduce_block)
        for phi, value in ((least, low), (second, low2), (index, arg)):
            phi.add_incoming(value, reduce_block)
        builder.cbranch(builder.icmp_signed("<", next_panel, n_panels), panel_block, done_block)

        builder.position_at_end(done_block)
        for line, value in enumerate((low, low2, arg)):
            builder.store(value, vector_at(out_array, const(line * lanes))).align = size
        return context.get_dummy_value()

    return types.void(rows, panels, offset, out), codegen
