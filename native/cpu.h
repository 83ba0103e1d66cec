// The widest set of instructions that this machine and its system run: 0 baseline, 1 AVX2 and FMA, 2 AVX-512.
#pragma once

#if defined(__x86_64__) || defined(_M_X64)
#include <cpuid.h>
// Not __builtin_cpu_supports: zig cannot link what it needs into a module.
inline int level_of_machine() {
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return 0;  // the system does not save vectors
    const bool fma = c >> 12 & 1;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    const unsigned narrow = 1u << 3 | 1u << 5 | 1u << 8;              // BMI1, AVX2, BMI2
    const unsigned wide = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;  // F, DQ, BW, VL
    if ((low & 0x06) != 0x06 || !fma || (b & narrow) != narrow) return 0;
    return (b & wide) == wide && (low & 0xE6) == 0xE6 ? 2 : 1;
}
#else
inline int level_of_machine() { return 0; }
#endif
