// Samples of partitions: which rows are together, and the partition that is nearest to all of them.
#include "border.h"

namespace {

// Samples that a byte can count.
constexpr i64 COUNTED = 255;
// Rows whose labels stay in the cache while others are compared with them.
constexpr i64 TOGETHER = 16;

template <class T> i32 equal(const T* __restrict a, const T* __restrict b, i64 n) {
    i32 total = 0;
    for (i64 i = 0; i < n; ++i) total += a[i] == b[i];
    return total;
}

// In bytes: as many at a time as fit into a vector.
template <> i32 equal<u8>(const u8* __restrict a, const u8* __restrict b, i64 n) {
    constexpr i64 LANES = 64;
    i32 total = 0;
    i64 i = 0;
    while (n - i >= LANES) {
        u8 count[LANES] = {};
        const i64 stop = smaller(n - LANES, i + (COUNTED - 1) * LANES);
        for (; i <= stop; i += LANES)
            for (i64 l = 0; l < LANES; ++l) count[l] = u8(count[l] + (a[i + l] == b[i + l]));
        for (i64 l = 0; l < LANES; ++l) total += count[l];
    }
    for (; i < n; ++i) total += a[i] == b[i];
    return total;
}

i32 largest(const i32* labels, i64 n) {
    i32 top = 0;
    for (i64 i = 0; i < n; ++i) top = labels[i] > top ? labels[i] : top;
    return top;
}

}  // namespace

template <class T> static void together(Mat<const T> labels, Rows first, Rows second, Mat<i32> counts) {
    for (i64 start = 0; start < first.n; start += TOGETHER) {
        const i64 stop = smaller(start + TOGETHER, first.n);
        for (i64 j = 0; j < second.n; ++j)
            for (i64 i = start; i < stop; ++i) counts(i, j) = equal<T>(labels[first[i]], labels[second[j]], labels.p);
    }
}

static void overlaps(Mat<const i32> candidates, Mat<const i32> samples, Vec<const i64> weight, Vec<const i64> value,
                     Vec<i64> total) {
    const i64 N = samples.p, S = samples.n;
    const Room<i64> widths(S);
    i64 width = 0, height = 0;
    for (i64 s = 0; s < S; ++s) widths[s] = i64(largest(samples[s], N)) + 1, width = larger(width, widths[s]);
    for (i64 c = 0; c < candidates.n; ++c) height = larger(height, i64(largest(candidates[c], N)) + 1);
    // rows in turn are counted in two tables: neighbours are often in one cell, which would have to wait for itself
    const Room<i32> even(height * width, 0), odd(height * width, 0);
    for (i64 c = 0; c < candidates.n; ++c) {
        const i32* mine = candidates[c];
        const i64 K = i64(largest(mine, N)) + 1;
        total[c] = 0;
        for (i64 s = 0; s < S; ++s) {
            const i32* other = samples[s];
            const i64 L = widths[s];
            i64 i = 0;
            for (; i + 1 < N; i += 2) ++even[mine[i] * L + other[i]], ++odd[mine[i + 1] * L + other[i + 1]];
            if (i < N) ++even[mine[i] * L + other[i]];
            u64 sum = 0;
            const auto take = [&](i64 cell) {
                sum += u64(value[even[cell] + odd[cell]]);
                even[cell] = odd[cell] = 0;  // value[0] is 0: a cell that is looked at twice counts once
            };
            if (K * L < N)
                for (i64 cell = 0; cell < K * L; ++cell) take(cell);
            else
                for (i64 j = 0; j < N; ++j) take(mine[j] * L + other[j]);
            total[c] = i64(u64(total[c]) + u64(weight[s]) * sum);
        }
    }
}

// Sums of products are of unsigned numbers: they wrap where weights are absurd.
static i64 improve_partition(Mat<const i32> ids, Vec<const i64> weight, Vec<const i64> gain, Vec<i32> labels,
                             Vec<i32> sizes, Mat<i32> counts) {
    const i64 S = ids.p, K = sizes.n;
    u64 every = 0;
    for (i64 s = 0; s < S; ++s) every += u64(weight[s]);
    for (i32& size : sizes) size = 0;
    for (i64 cell = 0; cell < counts.n * K; ++cell) counts.data[cell] = 0;
    const Room<i64> sample(counts.n, -1);
    for (i64 i = 0; i < labels.n; ++i) {
        ++sizes[labels[i]];
        for (i64 s = 0; s < S; ++s) {
            i64& owner = sample[ids(i, s)];
            require(owner == -1 || owner == s, "ids of two samples must differ");
            owner = s;
            ++counts(ids(i, s), labels[i]);
        }
    }
    const Room<u64> shared(K);
    const auto cost = [&](i64 k) { return i64(every * u64(gain[sizes[k]]) - 2 * shared[k]); };
    i64 moves = 0;
    for (i64 i = 0; i < labels.n; ++i) {
        const i32 own = labels[i];
        const i32* mine = ids[i];
        --sizes[own];
        for (i64 k = 0; k < K; ++k) shared[k] = 0;
        for (i64 s = 0; s < S; ++s) {
            i32* cells = counts[mine[s]];
            --cells[own];
            for (i64 k = 0; k < K; ++k) shared[k] += u64(weight[s]) * u64(gain[cells[k]]);
        }
        i32 best = own;
        for (i64 k = 0; k < K; ++k)
            if (cost(k) < cost(best)) best = i32(k);
        moves += best != own;
        labels[i] = best;
        ++sizes[best];
        for (i64 s = 0; s < S; ++s) ++counts(mine[s], best);
    }
    return moves;
}

static const border::Kernel kernels[] = {
    border::kernel<improve_partition>(
        "improve_partition(ids[N,S]<T, weight[S], gain[N], labels[N]<K, sizes[K], counts[T,K])"),
    border::kernel<overlaps>("overlaps(candidates[C,N]<N, samples[S,N]<N, weight[S], value[N+1], total[C])"),
    border::kernel<together<u8>, together<i32>>("together(labels[N,S], first[n]<N, second[m]<N, counts[n,m])"),
};
static const border::Publish publish(kernels);
