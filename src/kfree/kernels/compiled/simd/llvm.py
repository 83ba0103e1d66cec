"""What the kernels that are spelled out in LLVM vectors have in common."""

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError

#: A product and a sum may become one multiply-add: the only liberty taken with the order of roundings.
CONTRACT = ("contract",)
INTEGER = ir.IntType(64)


def check_layout(*kinds):
    """Arrays are read by address: one that is not contiguous would be read wrongly, and is an error."""
    for kind in kinds:
        if isinstance(kind, types.Array) and kind.layout != "C":
            raise TypingError(f"{kind} is not contiguous; pass numpy.ascontiguousarray of it.")


def splat(builder, scalar, vector):
    """A vector with the same value in every lane."""
    empty = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(empty, scalar, ir.Constant(ir.IntType(32), 0))
    lane_zero = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, empty, lane_zero)


def load(builder, pointer, vector):
    """A vector from memory that is aligned for its elements only."""
    value = builder.load(builder.bitcast(pointer, vector.as_pointer()))
    value.align = 4 if vector.element == ir.FloatType() else 8
    return value


def fused(builder, total, a, b):
    """``total + a * b``."""
    return builder.fadd(total, builder.fmul(a, b, flags=CONTRACT), flags=CONTRACT)


def sum_of_lanes(builder, value):
    """Halves added to halves: a fixed order."""
    half = value.type.count
    while half > 1:
        half //= 2
        kind = ir.VectorType(ir.IntType(32), half)
        low = builder.shuffle_vector(value, value, ir.Constant(kind, list(range(half))))
        high = builder.shuffle_vector(value, value, ir.Constant(kind, list(range(half, 2 * half))))
        value = builder.fadd(low, high)
    return builder.extract_element(value, ir.Constant(ir.IntType(32), 0))


def add_up(builder, width, lanes, zeros, terms):
    """Sums over columns, ``lanes`` at a time: ``terms(column, totals)`` returns the totals after one more step.

    Returns the totals, vectors like ``zeros``. ``width`` is a positive multiple of ``lanes``.
    """
    entry, loop, done = builder.block, builder.append_basic_block("columns"), builder.append_basic_block("columns.done")
    builder.branch(loop)
    builder.position_at_end(loop)
    column, totals = builder.phi(INTEGER), [builder.phi(zero.type) for zero in zeros]
    column.add_incoming(INTEGER(0), entry)
    for total, zero in zip(totals, zeros):
        total.add_incoming(zero, entry)
    summed = terms(column, totals)
    for total, value in zip(totals, summed):
        total.add_incoming(value, loop)
    following = builder.add(column, INTEGER(lanes))
    column.add_incoming(following, loop)
    builder.cbranch(builder.icmp_signed("<", following, width), loop, done)
    builder.position_at_end(done)
    return summed
