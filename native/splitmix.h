// Splitmix64 (Steele, Lea & Flood 2014): numbers that look like chance and are functions of numbers.
#pragma once
#include "views.h"

constexpr u64 GOLDEN = 0x9E3779B97F4A7C15;

// The finaliser: spreads the bits of a number over all 64.
KF_INLINE u64 mix(u64 v) {
    v = (v ^ (v >> 30)) * 0xBF58476D1CE4E5B9;
    v = (v ^ (v >> 27)) * 0x94D049BB133111EB;
    return v ^ (v >> 31);
}
