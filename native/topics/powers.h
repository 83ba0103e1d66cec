// Logarithms, exponentials and powers of 16 numbers of single precision.
//
// The polynomials are those of the Cephes library (S. Moshier), good to about one unit in the last place: without them
// a scalar function would be called for each number.
#pragma once
#include "topics/lanes.h"

namespace corpus {

namespace cephes {

// log 2 in two parts, of which the first has few digits; the bits of sqrt(1/2)
constexpr float LN2 = 0.693359375f, LN2_REST = -2.12194440e-4f;
constexpr std::uint32_t ROOT_HALF = 0x3F3504F3;

template <class... More> KF_INLINE Sixteen polynomial(Sixteen x, float first, More... more) {
    Sixteen value = first;
    ((value = more + value * x), ...);
    return value;
}

}  // namespace cephes

// Logarithms of positive numbers; of others anything.
KF_INLINE Sixteen log_of(Sixteen x) {
    using namespace cephes;
    const auto bits = bits_as<std::uint32_t>(x) - ROOT_HALF;
    const Sixteen exponent = converted<float>(bits_as<i32>(bits) >> 23);
    const Sixteen f = bits_as<float>((bits & 0x7FFFFF) + ROOT_HALF) - 1.0f, square = f * f;
    Sixteen y = polynomial(f, 7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f,
                           1.4249322787e-1f, -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f);
    y = y * f * square;
    y += exponent * LN2_REST;
    y += square * -0.5f;
    return (f + y) + exponent * LN2;
}

// Exponentials, of what is within the range of single precision.
KF_INLINE Sixteen exp_of(Sixteen x) {
    using namespace cephes;
    x = choose(x > -87.0f, x, Sixteen(-87.0f));
    x = choose(x < 88.0f, x, Sixteen(88.0f));
    // the nearest whole number: truncation rounds down what is positive
    const auto whole = converted<i32>(1024.5f + x * 1.44269504088896341f) - 1024;
    const Sixteen count = converted<float>(whole);
    const Sixteen r = (x + count * -LN2) + count * -LN2_REST;
    Sixteen y = polynomial(r, 1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f,
                           5.0000001201e-1f);
    y = y * (r * r) + r + 1.0f;
    return bits_as<float>(bits_as<i32>(y) + (whole << 23));
}

}  // namespace corpus
