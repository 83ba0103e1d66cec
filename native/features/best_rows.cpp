#include "features/best_rows.h"

#include <cmath>
#include <optional>

#include "border.h"
#include "features/one_row.h"

using namespace features;

namespace {

i64 decode_rows(MatIn P, MatIn G, In slack, i64 cap, Flag stop, Mat<u8> Z, Out cost) {
    const Room<double> none(G.n, 0.0);
    const OneRow one(G);
    const Decoder decoder(G);
    i64 changed = 0;
    for (i64 n = 0; n < P.n; ++n) {
        if (!stop) changed += decoder.improve(P[n], none.data, cap, slack[n], Z[n]);
        cost[n] = one.cost(Z[n], P[n], none.data);
    }
    return changed;
}

// Row k of the target minus a multiple of a row of the source.
KF_INLINE void subtract(double factor, i64 p, const double* __restrict source, double* __restrict target) {
    for (i64 d = 0; d < p; ++d) target[d] -= factor * source[d];
}

// Searches of one row in a walk; what they need is made when a row asks for it.
class Search {
  public:
    Search(MatIn G, bool exact, i64 cap) : G_(G), one_(G), exact_(exact), cap_(cap) {}
    const OneRow& one() const { return one_; }
    void improve(const double* p, const double* charge, double slack, Vec<u8> z) {
        if (!exact_) {
            one_.sweep(p, charge, slack, 0, z.data);
        } else if (G_.n <= MOST_IN_TABLES) {
            if (!all_) all_.emplace(G_);
            const i64 now = index_of(z);
            const AllRows::Found found = all_->least(p, charge, now);
            if (found.row != now && found.cost < one_.cost(z.data, p, charge) - slack) set_row(found.row, z);
        } else {
            if (!decoder_) decoder_.emplace(G_);
            decoder_->improve(p, charge, cap_, slack, z.data);
        }
    }

  private:
    MatIn G_;
    OneRow one_;
    bool exact_;
    i64 cap_;
    std::optional<AllRows> all_;
    std::optional<Decoder> decoder_;
};

}  // namespace

i64 sweep_rows(MatIn P, MatIn G, In slack, Mat<u8> Z, Out cost) {
    const Room<double> none(G.n, 0.0);
    const OneRow one(G);
    i64 changed = 0;
    for (i64 n = 0; n < P.n; ++n) {
        changed += one.sweep(P[n], none.data, slack[n], 0, Z[n]);
        cost[n] = one.cost(Z[n], P[n], none.data);
    }
    return changed;
}

i64 best_rows(MatIn P, MatIn G, In slack, i64 cap, Flag stop, Mat<u8> Z, Out cost) {
    if (G.n > MOST_IN_TABLES) return decode_rows(P, G, slack, cap, stop, Z, cost);
    const Room<double> none(G.n, 0.0);
    const OneRow one(G);
    const AllRows all(G);
    i64 changed = 0;
    for (i64 n = 0; n < P.n; ++n) {
        if (stop) {
            cost[n] = one.cost(Z[n], P[n], none.data);
            continue;
        }
        const i64 now = index_of(Z.row(n));
        AllRows::Found found = all.least(P[n], none.data, now);
        if (found.row != now) {
            const double before = one.cost(Z[n], P[n], none.data);
            if (found.cost < before - slack[n]) {
                ++changed;
                set_row(found.row, Z.row(n));
            } else {
                found.cost = before;
            }
        }
        cost[n] = found.cost;
    }
    return changed;
}

static std::tuple<i64, i64> walk_rows(MatIn P, MatIn G, Mat<const u8> proposed, i64 known, Vec<const bool> redo,
                                      In weight, In square, double lam, bool exact, i64 cap, Flag stop, i64 first,
                                      Mat<u8> Z, Vec<i64> count) {
    const i64 K = G.n;
    require(known == proposed.p && known <= K, "known must be the columns of proposed, and no more than K");
    require(first >= 0, "first must not be negative");
    Search search(G, exact, cap);
    const Room<double> charge(K), free(K, 0.0);
    const Room<u8> z(K);
    double largest = 0.0;
    for (i64 k = 0; k < K; ++k) largest = larger(largest, G(k, k));
    i64 changed = 0;
    for (i64 n = first; n < P.n; ++n) {
        if (stop) break;
        const double w = weight[n], slack = 1e-12 * (lam / w + square[n] + largest);
        bool alone = false;
        for (i64 k = 0; k < K; ++k) {
            z[k] = Z(n, k);
            charge[k] = 0.0;
            if (z[k] && count[k] == 1) alone = true, charge[k] = lam / w;
        }
        if (alone || redo[n] || (exact && known < K)) {
            search.improve(P[n], charge.data, slack, z);
        } else {
            for (i64 k = 0; k < known; ++k) z[k] = proposed(n, k);
            if (known < K) search.one().sweep(P[n], charge.data, slack, known, z.data);
        }
        bool other = false, emptied = false;
        for (i64 k = 0; k < K; ++k)
            if (z[k] != Z(n, k)) {
                other = true;
                count[k] += z[k] ? 1 : -1;
                emptied = emptied || count[k] == 0;
                Z(n, k) = z[k];
            }
        changed += other;
        const double left = w * (square[n] + search.one().cost(z.data, P[n], free.data));
        if (emptied || left > lam - 1e-6 * (lam + w * (square[n] + largest))) return {n, changed};
    }
    return {P.n, changed};
}

std::tuple<i64, double> solve_means(MatIn S, MatIn T, Vec<const bool> dropped, Vec<bool> keep, MatOut A) {
    const i64 K = T.n, p = T.p;
    const Room<double> factor(K * K, 0.0), remains(K * p);
    const MatOut L = factor.as(K, K), rest = remains.as(K, p);
    double gain = 0.0;
    for (i64 k = 0; k < K; ++k) {
        double pivot = S(k, k);
        for (i64 j = 0; j < k; ++j)
            if (keep[j]) {
                double inner = S(k, j);
                for (i64 m = 0; m < j; ++m) inner -= L(k, m) * L(j, m);
                L(k, j) = inner / L(j, j);
                pivot -= L(k, j) * L(k, j);
            }
        keep[k] = pivot > 1e-7 * S(k, k) && !dropped[k];
        if (S(k, k) > 0.0 && !keep[k] && !dropped[k]) return {k, gain};
        if (keep[k]) L(k, k) = std::sqrt(pivot);
        else
            for (i64 j = 0; j < K; ++j) L(k, j) = 0.0;
    }
    for (i64 i = 0; i < K * p; ++i) A.data[i] = 0.0;
    for (int turn = 0; turn < 2; ++turn) {  // the second solve takes the rounding of the first out
        for (i64 k = 0; k < K; ++k) {
            if (!keep[k]) continue;
            for (i64 d = 0; d < p; ++d) rest(k, d) = T(k, d);
            for (i64 j = 0; j < (turn ? K : 0); ++j)
                if (keep[j]) subtract(S(k, j), p, A[j], rest[k]);
            for (i64 m = 0; m < k; ++m)
                if (keep[m]) subtract(L(k, m), p, rest[m], rest[k]);
            for (i64 d = 0; d < p; ++d) rest(k, d) /= L(k, k);
            for (i64 d = 0; d < (turn ? 0 : p); ++d) gain += rest(k, d) * rest(k, d);
        }
        for (i64 k = K - 1; k >= 0; --k) {
            if (!keep[k]) continue;
            for (i64 m = k + 1; m < K; ++m)
                if (keep[m]) subtract(L(m, k), p, rest[m], rest[k]);
            for (i64 d = 0; d < p; ++d) {
                rest(k, d) /= L(k, k);
                A(k, d) += rest(k, d);
            }
        }
    }
    return {-1, gain};
}

static const border::Kernel kernels[] = {
    border::kernel<best_rows>("best_rows(P[n,K], G[K,K], slack[n], cap, stop[1], Z[n,K], cost[n])"),
    border::kernel<solve_means>("solve_means(S[K,K], T[K,p], dropped[K], keep[K], A[K,p])"),
    border::kernel<sweep_rows>("sweep_rows(P[n,K], G[K,K], slack[n], Z[n,K], cost[n])"),
    border::kernel<walk_rows>(
        "walk_rows(P[n,K], G[K,K], proposed[n,k], known, redo[n], weight[n], square[n], lam, exact, cap, stop[1], "
        "first, Z[n,K], count[K])"),
};
static const border::Publish publish(kernels);
