#include <algorithm>
#include <cmath>

#include "border.h"
#include "rows/slices.h"
#include "simd/lanes.h"
#include "splitmix.h"

namespace {

constexpr double ALL = 4294967296.0;  // keys are below this
constexpr u64 LOW = 0xFFFFFFFF;

KF_INLINE double square_apart(i64 p, const double* x, const double* centre) {
    i64 c = 0;
    double square = 0.0;
    if (p >= 8) {
        Eight sum{};
        for (; c + 8 <= p; c += 8) {
            const Eight gap = load<Eight>(x + c) - load<Eight>(centre + c);
            sum += gap * gap;
        }
        square = sum_of_lanes<double, 64>(sum);
    }
    for (; c < p; ++c) square += (x[c] - centre[c]) * (x[c] - centre[c]);
    return square;
}

// Puts the `most` least keys first in `found`, each with the places of all that have it; their number.
i64 least_keys(Vec<const u32> key, i64 most, u64* found) {
    double limit = key.n <= most ? ALL : (double(most) + 4 * std::sqrt(double(most))) / double(key.n) * ALL;
    for (;; limit *= 4) {  // too few: there are copies
        const u64 below = limit >= ALL ? LOW + 1 : u64(std::ceil(limit));
        i64 count = 0, distinct = 0;
        for (i64 i = 0; i < key.n; ++i) {
            found[count] = u64(key[i]) << 32 | u64(i);
            count += key[i] < below;
        }
        std::sort(found, found + count);
        for (i64 i = 0; i < count; ++i)
            if (i == 0 || found[i] >> 32 != found[i - 1] >> 32)
                if (distinct++ == most) return i;
        if (limit >= ALL) return count;
    }
}

}  // namespace

static void key_rows(MatIn X, In centre, double unit, Vec<u32> key) {
    constexpr double MOST = 4611686018427387904.0;  // 2^62
    constexpr i64 BLOCK = 64;                       // the second loop becomes vector code
    double square[BLOCK];
    for (i64 s = 0; s < X.n; s += BLOCK) {
        const i64 count = smaller(BLOCK, X.n - s);
        for (i64 i = 0; i < count; ++i) square[i] = square_apart(X.p, X[s + i], centre.data);
        for (i64 i = 0; i < count; ++i) {
            const double steps = std::sqrt(square[i]) * unit;
            key[s + i] = u32(mix(u64(i64(steps < MOST ? steps : MOST))) >> 32);
        }
    }
}

static void sample_rows(MatIn X, In weight, Vec<const u32> key, Rows start, Rows stop, In total, i64 most, bool merged,
                        Vec<i64> first, Vec<i64> chosen, Out n) {
    check_slices(start, stop, X.n);
    require(most > 0, "most must be positive");
    i64 longest = 0, all = 0;
    for (i64 t = 0; t < start.n; ++t) longest = larger(longest, stop[t] - start[t]), all += stop[t] - start[t];
    require(all <= chosen.n, "chosen has no room for all rows of the slices");
    require(longest <= i64(LOW), "slices must have fewer than 2^32 rows");
    const Room<u64> found(longest);
    i64 place = 0;
    for (i64 t = 0; t < start.n; ++t) {
        const i64 size = stop[t] - start[t];
        first[t] = place;
        if (size <= most && !merged) {
            for (i64 row = start[t]; row < stop[t]; ++row, ++place)
                chosen[place] = row, n[place] = weight.n ? weight[row] : 1.0;
            continue;
        }
        const i64 count = least_keys(key.part(start[t], stop[t]), most, found.data);
        double mass = 0.0;
        for (i64 i = 0; i < count; ++i) {
            const i64 row = start[t] + i64(found[i] & LOW);
            const double w = weight.n ? weight[row] : 1.0;
            mass += w;
            if (place > first[t]) {
                const i64 last = chosen[place - 1];
                if (key[row] == key[last] && same_rows(X, row, last)) {
                    n[place - 1] += w;
                    continue;
                }
            }
            chosen[place] = row, n[place++] = w;
        }
        if (count < size)
            for (i64 i = first[t]; i < place; ++i) n[i] *= total[t] / mass;
    }
    first[start.n] = place;
}

static const border::Kernel kernels[] = {
    border::kernel<key_rows>("key_rows(X[n,p], centre[p], unit, key[n])"),
    border::kernel<sample_rows>(
        "sample_rows(X[N,p], weight[N]?, key[N], start[t], stop[t], total[t], most, merged, first[t+1], chosen[r], "
        "n[r])"),
};
static const border::Publish publish(kernels);
