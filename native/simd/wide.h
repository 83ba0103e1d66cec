// A fixed number of lanes on every machine, held in vectors of its own width: all levels do the same arithmetic.
// Compilers do take vectors that are wider than the machine's, but GCC then compares and chooses entry by entry.
#pragma once
#include "simd/vectors.h"

template <class R, int N> struct Wide {
    static constexpr int BYTES = N * int(sizeof(R)) < WIDTH ? N * int(sizeof(R)) : WIDTH;
    static constexpr int PARTS = N * int(sizeof(R)) / BYTES;
    static constexpr int EACH = N / PARTS;
    static_assert(PARTS == 1 || PARTS == 2 || PARTS == 4);
    using Part = Lanes<R, BYTES>;
    using Mask = Wide<std::conditional_t<sizeof(R) == 4, i32, i64>, N>;

    Part part[PARTS];

    Wide() = default;  // Wide{} is zero
    KF_INLINE Wide(R x) {
        *this = made([x](Part zero) { return x - zero; }, Wide{});
    }
    KF_INLINE static Wide at(const R* from) {
        Wide out;
        out.part[0] = ::load<Part>(from);
        if constexpr (PARTS > 1) out.part[1] = ::load<Part>(from + EACH);
        if constexpr (PARTS > 2) out.part[2] = ::load<Part>(from + 2 * EACH);
        if constexpr (PARTS > 2) out.part[3] = ::load<Part>(from + 3 * EACH);
        return out;
    }
    KF_INLINE void put(R* to) const {
        ::store(to, part[0]);
        if constexpr (PARTS > 1) ::store(to + EACH, part[1]);
        if constexpr (PARTS > 2) ::store(to + 2 * EACH, part[2]);
        if constexpr (PARTS > 2) ::store(to + 3 * EACH, part[3]);
    }

    // What a function of parts makes of those of the arguments; no loop, so that nothing is put into memory.
    template <class F, class... From> KF_INLINE static Wide made(F f, const From&... from) {
        Wide out;
        out.part[0] = (Part)f(from.part[0]...);
        if constexpr (PARTS > 1) out.part[1] = (Part)f(from.part[1]...);
        if constexpr (PARTS > 2) out.part[2] = (Part)f(from.part[2]...);
        if constexpr (PARTS > 2) out.part[3] = (Part)f(from.part[3]...);
        return out;
    }

    KF_INLINE friend Wide operator+(Wide a, Wide b) {
        return made([](Part x, Part y) { return x + y; }, a, b);
    }
    KF_INLINE friend Wide operator-(Wide a, Wide b) {
        return made([](Part x, Part y) { return x - y; }, a, b);
    }
    KF_INLINE friend Wide operator*(Wide a, Wide b) {
        return made([](Part x, Part y) { return x * y; }, a, b);
    }
    KF_INLINE friend Wide operator/(Wide a, Wide b) {
        return made([](Part x, Part y) { return x / y; }, a, b);
    }
    KF_INLINE friend Wide operator&(Wide a, Wide b) {
        return made([](Part x, Part y) { return x & y; }, a, b);
    }
    KF_INLINE friend Wide operator<<(Wide a, int by) {
        return made([by](Part x) { return x << by; }, a);
    }
    KF_INLINE friend Wide operator>>(Wide a, int by) {
        return made([by](Part x) { return x >> by; }, a);
    }
    KF_INLINE friend Mask operator<(Wide a, Wide b) {
        return Mask::made([](Part x, Part y) { return x < y; }, a, b);
    }
    KF_INLINE friend Mask operator>(Wide a, Wide b) {
        return Mask::made([](Part x, Part y) { return x > y; }, a, b);
    }
    KF_INLINE friend Mask operator==(Wide a, Wide b) {
        return Mask::made([](Part x, Part y) { return x == y; }, a, b);
    }
    KF_INLINE Wide& operator+=(Wide other) { return *this = *this + other; }
};

template <class R, int N> KF_INLINE Wide<R, N> choose(typename Wide<R, N>::Mask where, Wide<R, N> a, Wide<R, N> b) {
    return Wide<R, N>::made([](auto mask, auto x, auto y) { return mask ? x : y; }, where, a, b);
}
template <class R, int N> KF_INLINE Wide<R, N> larger(Wide<R, N> a, Wide<R, N> b) { return choose(b > a, b, a); }
template <class R, int N> KF_INLINE Wide<R, N> smaller(Wide<R, N> a, Wide<R, N> b) { return choose(b < a, b, a); }

// Entries as numbers of another type of the same size.
template <class To, class From, int N> KF_INLINE Wide<To, N> converted(Wide<From, N> x) {
    using Part = typename Wide<To, N>::Part;
    return Wide<To, N>::made([](auto part) { return __builtin_convertvector(part, Part); }, x);
}
// The bits of the entries as another type.
template <class To, class From, int N> KF_INLINE Wide<To, N> bits_as(Wide<From, N> x) {
    return Wide<To, N>::made([](auto part) { return part; }, x);
}

namespace wide {

// What joining all lanes of a vector gives, halves with halves: the same order on every machine.
template <class R, class V, class Join> KF_INLINE R joined_part(V v, Join join) {
    constexpr int n = int(sizeof(V) / sizeof(R));
    if constexpr (n == 16)
        return joined_part<R>(join(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7),
                                   __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15)),
                              join);
    else if constexpr (n == 8)
        return joined_part<R>(
            join(__builtin_shufflevector(v, v, 0, 1, 2, 3), __builtin_shufflevector(v, v, 4, 5, 6, 7)), join);
    else if constexpr (n == 4) return join(join(R(v[0]), R(v[2])), join(R(v[1]), R(v[3])));
    else return join(R(v[0]), R(v[1]));
}

}  // namespace wide

template <class R, int N, class Join> KF_INLINE R joined(Wide<R, N> x, Join join) {
    if constexpr (Wide<R, N>::PARTS == 4)
        return wide::joined_part<R>(join(join(x.part[0], x.part[2]), join(x.part[1], x.part[3])), join);
    else if constexpr (Wide<R, N>::PARTS == 2) return wide::joined_part<R>(join(x.part[0], x.part[1]), join);
    else return wide::joined_part<R>(x.part[0], join);
}
template <class R, int N> KF_INLINE R sum_of_lanes(Wide<R, N> x) {
    return joined(x, [](auto a, auto b) { return a + b; });
}
