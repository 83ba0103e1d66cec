// Vectors of the machine's own width, by the vector extensions of GCC and Clang: no intrinsics.
#pragma once
#include <cstring>

#include "views.h"

#if defined(__AVX512F__)
constexpr int WIDTH = 64;
#elif defined(__AVX__)
constexpr int WIDTH = 32;
#else
constexpr int WIDTH = 16;  // SSE2, NEON
#endif

template <class R, int BYTES> struct vector_of {
    typedef R type __attribute__((vector_size(BYTES)));
};
// BYTES of entries of a type side by side.
template <class R, int BYTES = WIDTH> using Lanes = typename vector_of<R, BYTES>::type;

template <class V, class R> KF_INLINE V load(const R* at) {
    V value;
    std::memcpy(&value, at, sizeof(V));
    return value;
}
template <class V, class R> KF_INLINE void store(R* at, V value) { std::memcpy(at, &value, sizeof(V)); }
template <class V, class R> KF_INLINE V splat(R x) { return x - V{}; }

// W entries, single or double precision, as doubles.
template <class T, int W> KF_INLINE Lanes<double, 8 * W> widened(const T* at) {
    using V = Lanes<double, 8 * W>;
    // GCC makes one instruction of a list of four, and several of __builtin_convertvector
    if constexpr (sizeof(T) == 4 && W == 4) return V{double(at[0]), double(at[1]), double(at[2]), double(at[3])};
    else if constexpr (sizeof(T) == 4 && W == 2) return V{double(at[0]), double(at[1])};
    else return __builtin_convertvector(load<Lanes<T, int(sizeof(T)) * W>>(at), V);
}
