#include <algorithm>
#include <bit>

#include "border.h"
#include "rows/entries.h"
#include "splitmix.h"

namespace {

// Columns count from 1.
KF_INLINE u64 hash_of(u64 column) { return mix((column + 1) * GOLDEN); }
KF_INLINE u64 hash_of(double value, u64 column_hash) { return mix(std::bit_cast<u64>(value) + column_hash); }

template <class T> void hash_dense(Mat<const T> X, Rows rows, Vec<u64> hashes) {
    const Room<u64> column(X.p);
    for (i64 j = 0; j < X.p; ++j) column[j] = hash_of(u64(j));
    for (i64 t = 0; t < rows.n; ++t) {
        const T* x = X[rows[t]];
        u64 total = 0;
        for (i64 j = 0; j < X.p; ++j) total += x[j] != 0 ? hash_of(double(x[j]), column[j]) : 0;
        hashes[t] = mix(total);
    }
}

template <class T> void hash_csr(Vec<const T> data, Vec<const i32> indices, Rows indptr, Rows rows, Vec<u64> hashes) {
    for (i64 t = 0; t < rows.n; ++t) {
        const Entries mine(indptr, indices, rows[t]);
        u64 total = 0;
        for (i64 q = mine.first; q < mine.last; ++q)
            if (data[q] != 0) total += hash_of(double(data[q]), hash_of(u64(indices[q])));
        hashes[t] = mix(total);
    }
}

i64 find_content(Vec<const u64> hashes, Vec<const u64> wanted, Vec<i64> rows) {
    bool likely[4096] = {};  // nearly all rows are none of them: twelve bits of the hash tell
    for (const u64 hash : wanted) likely[hash & 4095] = true;
    i64 count = 0;
    for (i64 i = 0; i < hashes.n; ++i)
        if (likely[hashes[i] & 4095]) [[unlikely]]
            if (std::binary_search(wanted.begin(), wanted.end(), hashes[i])) rows[count++] = i;
    return count;
}

}  // namespace

static const border::Kernel kernels[] = {
    border::kernel<find_content>("find_content(hashes[n], wanted[*], rows[n..])"),
    border::kernel<hash_csr<double>, hash_csr<float>>(
        "hash_csr(data[z], indices[z], indptr[N+1], rows[n]<N, hashes[n])"),
    border::kernel<hash_dense<double>, hash_dense<float>>("hash_dense(X[N,p], rows[n]<N, hashes[n])"),
};
static const border::Publish publish(kernels);
