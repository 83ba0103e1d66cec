"""Powers and logarithms of rows, in vectors of 16 single-precision lanes.

Logarithms and exponentials are the polynomials of the Cephes library (S. Moshier), good to about one unit in the last
place: numba would call a scalar function for each, and numpy would write every step to memory.
"""

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from kfree.kernels.compiled.cache import njit
from kfree.kernels.compiled.simd.lanes import LANES
from kfree.kernels.compiled.simd.llvm import CONTRACT, add_up, fused, load, splat, sum_of_lanes

_FLOATS = ir.VectorType(ir.FloatType(), LANES)
_WORDS = ir.VectorType(ir.IntType(32), LANES)
_LOG = (
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)
_EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
# log 2 in two parts, of which the first has few digits; the bits of sqrt(1/2)
_LN2, _LN2_REST, _ROOT_HALF = 0.693359375, -2.12194440e-4, 0x3F3504F3


def _floats(value):
    single = float(np.float32(value))
    return ir.Constant(_FLOATS, [single] * LANES)


def _words(value):
    return ir.Constant(_WORDS, [value] * LANES)


def _polynomial(builder, coefficients, x):
    value = _floats(coefficients[0])
    for coefficient in coefficients[1:]:
        value = fused(builder, _floats(coefficient), value, x)
    return value


def _log(builder, x):
    """Logarithms of positive numbers."""
    bits = builder.sub(builder.bitcast(x, _WORDS), _words(_ROOT_HALF))
    exponent = builder.sitofp(builder.ashr(bits, _words(23)), _FLOATS)
    mantissa = builder.add(builder.and_(bits, _words(0x7FFFFF)), _words(_ROOT_HALF))
    f = builder.fsub(builder.bitcast(mantissa, _FLOATS), _floats(1.0))
    square = builder.fmul(f, f)
    y = builder.fmul(builder.fmul(_polynomial(builder, _LOG, f), f), square)
    y = fused(builder, y, exponent, _floats(_LN2_REST))
    y = fused(builder, y, square, _floats(-0.5))
    return fused(builder, builder.fadd(f, y), exponent, _floats(_LN2))


def _exp(builder, x):
    """Exponentials, of what is within the range of single precision."""
    x = builder.select(builder.fcmp_ordered(">", x, _floats(-87.0)), x, _floats(-87.0))
    x = builder.select(builder.fcmp_ordered("<", x, _floats(88.0)), x, _floats(88.0))
    # the nearest whole number: truncation rounds down what is positive
    lifted = fused(builder, _floats(1024.5), x, _floats(1.44269504088896341))
    whole = builder.sub(builder.fptosi(lifted, _WORDS), _words(1024))
    count = builder.sitofp(whole, _FLOATS)
    r = fused(builder, fused(builder, x, count, _floats(-_LN2)), count, _floats(-_LN2_REST))
    y = builder.fmul(_polynomial(builder, _EXP, r), builder.fmul(r, r))
    y = builder.fadd(builder.fadd(y, r), _floats(1.0))
    bits = builder.add(builder.bitcast(y, _WORDS), builder.shl(whole, _words(23)))
    return builder.bitcast(bits, _FLOATS)


@intrinsic
def _power_of_row(typingctx, counts, row, factor, own, column, power, out):
    """Fill ``out[row]`` and return the sum of logarithms; ``power`` None is 1."""
    plain = isinstance(power, types.NoneType)

    def codegen(context, builder, signature, args):
        def array(i):
            return context.make_array(signature.args[i])(context, builder, args[i])

        table, into = array(0), array(6)
        width = builder.extract_value(table.shape, 1)
        start = builder.mul(args[1], width)
        weight = splat(builder, args[3], _FLOATS)
        factors, columns = array(2), array(4)

        def at(data, place):
            return builder.gep(data, [place])

        def terms(place, totals):
            here = builder.add(start, place)
            value = builder.fmul(weight, load(builder, at(columns.data, place), _FLOATS), flags=CONTRACT)
            value = fused(
                builder,
                value,
                load(builder, at(table.data, here), _FLOATS),
                load(builder, at(factors.data, place), _FLOATS),
            )
            there = builder.fcmp_ordered(">", value, _floats(0.0))
            logs = _log(builder, value)
            result = value if plain else _exp(builder, builder.fmul(logs, splat(builder, args[5], _FLOATS)))
            result = builder.select(there, result, _floats(0.0))
            builder.store(result, builder.bitcast(at(into.data, here), _FLOATS.as_pointer())).align = 4
            return [builder.fadd(totals[0], builder.select(there, logs, _floats(0.0)))]

        total = add_up(builder, width, LANES, [_floats(0.0)], terms)[0]
        return sum_of_lanes(builder, total)

    return types.float32(counts, types.int64, factor, types.float32, column, power, out), codegen


@njit(nogil=True, cache=True)
def raise_rows(counts, first, last, factor, own, column, power, out, logs):  # noqa: D103
    for i in range(first, last):
        logs[i] = _power_of_row(counts, i, factor, own[i], column, power, out)  # type: ignore[call-arg]
