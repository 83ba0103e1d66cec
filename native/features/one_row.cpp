#include "features/one_row.h"

#include <cmath>
#include <utility>

#include "simd/vectors.h"

namespace features {

namespace {

constexpr i64 LOW = 6;          // features of the first half of all rows
constexpr i64 ALWAYS = 2;       // features of the other half up to which none is left out
constexpr double FLAT = 1e-10;  // share of its diagonal below which a pivot stands for a feature that others span

using V = Lanes<double>;
constexpr i64 W = WIDTH / 8, BITS = W == 2 ? 1 : W == 4 ? 2 : 3;  // entries of a vector, and their bits

// total[y] = sum of the steps of the bits of y
void subset_sums(const double* step, i64 bits, double* total) {
    total[0] = 0.0;
    for (i64 b = 0; b < bits; ++b)
        for (i64 y = 0, half = i64(1) << b; y < half; ++y) total[half + y] = total[y] + step[b];
}

// z G z' of all rows z of the features from `first` to `stop`; infinite beyond them, so that none is the least
void fill_squares(MatIn G, i64 first, i64 stop, const Room<double>& value) {
    const i64 bits = stop - first;
    const Room<double> cross(i64(1) << bits);
    for (double& some : value) some = INF;
    value[0] = 0.0;
    for (i64 b = 0; b < bits; ++b) {
        subset_sums(G[first + b] + first, b, cross.data);
        for (i64 y = 0, half = i64(1) << b; y < half; ++y)
            value[half + y] = value[y] + G(first + b, first + b) + 2.0 * cross[y];
    }
}

template <class U> KF_INLINE U smaller_of(U a, U b) { return b < a ? b : a; }
template <class U> KF_INLINE U larger_of(U a, U b) { return b > a ? b : a; }

template <class U> KF_INLINE double least_of(U x) {
    if constexpr (sizeof(U) == 64)
        return least_of(
            smaller_of(__builtin_shufflevector(x, x, 0, 1, 2, 3), __builtin_shufflevector(x, x, 4, 5, 6, 7)));
    else if constexpr (sizeof(U) == 32)
        return least_of(smaller_of(__builtin_shufflevector(x, x, 0, 1), __builtin_shufflevector(x, x, 2, 3)));
    else return smaller(x[0], x[1]);
}

// The second least, of lanes that each have a least and a second one.
template <class U> KF_INLINE double second_of(U first, U next) {
    if constexpr (sizeof(U) == 16) return smaller(smaller(next[0], next[1]), larger(first[0], first[1]));
    else {
        const auto half = [](U x) {
            if constexpr (sizeof(U) == 64)
                return std::pair(__builtin_shufflevector(x, x, 0, 1, 2, 3), __builtin_shufflevector(x, x, 4, 5, 6, 7));
            else return std::pair(__builtin_shufflevector(x, x, 0, 1), __builtin_shufflevector(x, x, 2, 3));
        };
        const auto [a, b] = half(first);
        const auto [c, d] = half(next);
        return second_of(smaller_of(a, b), smaller_of(larger_of(a, b), smaller_of(c, d)));
    }
}

// Sums of the steps of the bits of the first few rows.
template <class U, class Step> KF_INLINE U first_sums(const Step& step) {
    const double a = step(0), b = step(1), c = step(2);
    if constexpr (sizeof(U) == 16) return U{0.0, a};
    else if constexpr (sizeof(U) == 32) return U{0.0, a, 0.0, a} + U{0.0, 0.0, b, b};
    else
        return U{0.0, a, 0.0, a, 0.0, a, 0.0, a} + U{0.0, 0.0, b, b, 0.0, 0.0, b, b} +
               U{0.0, 0.0, 0.0, 0.0, c, c, c, c};
}

// Cost of all rows of one half on its own; returns the least.
KF_INLINE double half_costs(const double* p, const double* charge, i64 bits, const double* own, i64 size,
                            double* cost) {
    const auto step = [&](i64 b) { return b < bits ? charge[b] - 2.0 * p[b] : 0.0; };
    store(cost, first_sums<V>(step));
    for (i64 bit = BITS, half = W; half < size; ++bit, half *= 2) {
        const V more = splat<V>(step(bit));
        for (i64 y = 0; y < half; y += W) store(cost + half + y, load<V>(cost + y) + more);
    }
    V best = splat<V>(INF);
    for (i64 y = 0; y < size; y += W) {
        const V value = load<V>(cost + y) + load<V>(own + y);
        store(cost + y, value);
        best = smaller_of(best, value);
    }
    return least_of(best);
}

// Least entry of the sum; there are no NaN.
KF_INLINE double least_sum(const double* a, const double* b, i64 size) {
    V best = load<V>(a) + load<V>(b);
    for (i64 i = W; i < size; i += W) best = smaller_of(best, load<V>(a + i) + load<V>(b + i));
    return least_of(best);
}

// to[y] = from[y] + step
KF_INLINE void add_step(i64 n, const double* from, double step, double* to) {
    if (n < W)
        for (i64 y = 0; y < n; ++y) to[y] = from[y] + step;
    else
        for (i64 y = 0; y < n; y += W) store(to + y, load<V>(from + y) + step);
}
KF_INLINE void add_both(i64 n, const double* a, const double* b, double* to) {
    if (n < W)
        for (i64 y = 0; y < n; ++y) to[y] = a[y] + b[y];
    else
        for (i64 y = 0; y < n; y += W) store(to + y, load<V>(a + y) + load<V>(b + y));
}

}  // namespace

void Forms::fill(MatIn B, const double* linear, i64 fixed) const {
    value_[0] = fixed ? B(0, 0) + linear[0] : 0.0;
    i64 half = 1;
    for (i64 b = fixed; b < B.n; ++b, half *= 2) {
        cross_[0] = B(b, b) + linear[b] + (fixed ? 2.0 * B(b, 0) : 0.0);
        i64 filled = 1;
        for (i64 j = fixed; j < b; ++j, filled *= 2) add_step(filled, cross_.data, 2.0 * B(b, j), cross_.data + filled);
        add_both(half, value_.data, cross_.data, value_.data + half);
    }
}

double OneRow::cost(const u8* z, const double* p, const double* charge) const {
    const i64 count = list_features(z, G_.n, on_.data);
    double total = 0.0;
    for (i64 i = 0; i < count; ++i) {
        const i64 k = on_[i];
        double inner = charge[k] - 2.0 * p[k];
        for (i64 j = 0; j < count; ++j) inner += G_(k, on_[j]);
        total += inner;
    }
    return total;
}

bool OneRow::sweep(const double* p, const double* charge, double slack, i64 first, u8* z) const {
    const i64 K = G_.n;
    i64 count = list_features(z, K, on_.data), at = 0;  // `at`: how many are before feature k
    while (at < count && on_[at] < first) ++at;
    bool changed = false;
    for (i64 k = first; k < K; ++k) {
        const bool has = at < count && on_[at] == k;
        double inner = 0.0;
        for (i64 i = 0; i < at; ++i) inner += G_(k, on_[i]);
        for (i64 i = at + has; i < count; ++i) inner += G_(k, on_[i]);
        const double gain = G_(k, k) + 2.0 * inner - 2.0 * p[k] + charge[k];  // of switching it on
        if (has ? gain > slack : gain < -slack) {
            z[k] = !has;
            changed = true;
            if (has) {
                --count;
                for (i64 i = at; i < count; ++i) on_[i] = on_[i + 1];
            } else {
                for (i64 i = count; i > at; --i) on_[i] = on_[i - 1];
                on_[at] = k;
                ++count;
            }
        }
        at += z[k] != 0;
    }
    return changed;
}

AllRows::AllRows(i64 K)
    : bits_(smaller(K, LOW)),
      more_(K - bits_),
      columns_(larger(i64(1) << bits_, W)),
      rows_(larger(i64(1) << more_, W)),
      own_low_(columns_),
      own_high_(rows_),
      shared_(columns_ * rows_, 0.0),
      least_(rows_),
      low_(columns_),
      high_(rows_) {}

void AllRows::fill(MatIn G) const {
    for (double& some : least_) some = INF;
    fill_squares(G, 0, bits_, own_low_);
    fill_squares(G, bits_, G.n, own_high_);
    double step[LOW];
    for (i64 j = 0; j < i64(1) << more_; ++j) {
        for (i64 k = 0; k < bits_; ++k) step[k] = 0.0;
        for (i64 b = 0; b < more_; ++b)
            if ((j >> b) & 1)
                for (i64 k = 0; k < bits_; ++k) step[k] += 2.0 * G(bits_ + b, k);
        double* row = &shared_[j * columns_];
        subset_sums(step, bits_, row);
        for (i64 y = 0; y < i64(1) << bits_; ++y) least_[j] = smaller(least_[j], row[y]);
    }
}

double AllRows::look(const double* p, const double* charge) const {
    half_costs(p + bits_, charge + bits_, more_, own_high_.data, rows_, high_.data);
    return half_costs(p, charge, bits_, own_low_.data, columns_, low_.data);
}

bool AllRows::others_cost(double least, i64 row, double bottom) const {
    const i64 own = row >> bits_;
    for (i64 j = 0; j < i64(1) << more_; ++j) {
        if (high_[j] + least_[j] + bottom >= least) continue;
        const double* shared = &shared_[j * columns_];
        Lanes<i64> below = {};
        for (i64 i = 0; i < columns_; i += W)
            below -= splat<V>(high_[j]) + (load<V>(shared + i) + load<V>(&low_[i])) < splat<V>(least);
        i64 count = j == own ? -i64(cost(row) < least) : 0;
        for (i64 l = 0; l < W; ++l) count += below[l];
        if (count) return false;
    }
    return true;
}

AllRows::Two AllRows::two(i64 row, double bottom) const {
    const V none = splat<V>(INF);
    V first = none, next = none;
    const auto look_at = [&](i64 j) {  // two vectors at a time, as either waits for what was found before
        const double* shared = &shared_[j * columns_];
        const V high = splat<V>(high_[j]);
        V other = none, after = none;
        const auto add = [&](i64 i, V& least, V& second) {
            const V value = high + (load<V>(shared + i) + load<V>(&low_[i]));
            second = smaller_of(second, larger_of(value, least));
            least = smaller_of(least, value);
        };
        i64 i = 0;
        for (; i + 2 * W <= columns_; i += 2 * W) add(i, first, next), add(i + W, other, after);
        if (i < columns_) add(i, first, next);
        next = smaller_of(smaller_of(next, after), larger_of(first, other));
        first = smaller_of(first, other);
    };
    const i64 own = row >> bits_, halves = i64(1) << more_;
    look_at(own);
    if (more_ <= ALWAYS)
        for (i64 j = 0; j < halves; ++j) {
            if (j != own) look_at(j);
        }
    else {
        double most = least_of(next);  // no less than the second
        for (i64 j = 0; j < halves; ++j)
            if (j != own && high_[j] + least_[j] + bottom < most) look_at(j), most = least_of(next);
    }
    return {least_of(first), second_of(first, next)};
}

AllRows::Found AllRows::least(double bottom, i64 guess) const {
    i64 row = guess >> bits_, i = guess - (row << bits_);
    double inner = least_sum(&shared_[row * columns_], low_.data, columns_), best = high_[row] + inner;
    for (i64 j = 0; j < i64(1) << more_; ++j)
        if (high_[j] + least_[j] + bottom < best) {
            const double value = least_sum(&shared_[j * columns_], low_.data, columns_);
            if (high_[j] + value < best) best = high_[j] + value, row = j, inner = value;
        }
    const double* shared = &shared_[row * columns_];
    if (row == guess >> bits_ && shared[i] + low_[i] == inner) return {guess, best};
    for (i = 0; i < (i64(1) << bits_) - 1; ++i)
        if (shared[i] + low_[i] == inner) break;
    return {(row << bits_) + i, best};
}

Decoder::Decoder(MatIn G)
    : K_(G.n),
      row_(G),
      order_(K_),
      R_(K_ * K_, 0.0),
      c_(K_),
      gap_(K_),
      partial_(K_ + 1),
      start_(K_),
      trial_(K_),
      state_(K_),
      tried_(K_),
      first_(K_),
      on_(K_) {
    factor(G);
}

void Decoder::factor(MatIn G) {
    for (i64 k = 0; k < K_; ++k) {  // stable: equal lengths stay in order
        i64 at = k;
        for (; at > 0 && G(k, k) < G(order_[at - 1], order_[at - 1]); --at) order_[at] = order_[at - 1];
        order_[at] = k;
    }
    const MatOut R = R_.as(K_, K_);
    for (i64 i = 0; i < K_; ++i) {
        const double length = G(order_[i], order_[i]);
        double pivot = length;
        for (i64 m = 0; m < i; ++m) pivot -= R(m, i) * R(m, i);
        if (pivot <= FLAT * length) continue;
        R(i, i) = std::sqrt(pivot);
        for (i64 j = i + 1; j < K_; ++j) {
            double inner = G(order_[i], order_[j]);
            for (i64 m = 0; m < i; ++m) inner -= R(m, i) * R(m, j);
            R(i, j) = inner / R(i, i);
        }
    }
}

bool Decoder::improve(const double* p, const double* charge, i64 cap, double slack, u8* z) const {
    const MatOut R = R_.as(K_, K_);
    for (i64 k = 0; k < K_; ++k) start_[k] = z[k];
    const double before = row_.cost(z, p, charge);
    for (i64 turn = 0; turn < K_; ++turn)
        if (!row_.sweep(p, charge, slack, 0, z)) break;
    double best = row_.cost(z, p, charge), offset = 0.0;
    for (i64 i = 0; i < K_; ++i) {
        c_[i] = 0.0;
        if (R(i, i) > 0.0) {
            double inner = p[order_[i]];
            for (i64 m = 0; m < i; ++m) inner -= R(m, i) * c_[m];
            c_[i] = inner / R(i, i);
            offset += c_[i] * c_[i];
        }
        state_[i] = tried_[i] = 0;
    }
    partial_[K_] = 0.0;
    i64 i = K_ - 1, nodes = 0, count = 0;  // `count` levels are on
    while (i < K_) {
        if (tried_[i] == 2 || nodes >= cap) {
            count -= state_[i];
            tried_[i] = state_[i] = 0;
            ++i;
            continue;
        }
        const double extra = charge[order_[i]];
        if (tried_[i] == 0) {  // what the levels above leave of this one
            double gap = c_[i];
            for (i64 j = count; j-- > 0;) gap -= R(i, on_[j]);
            gap_[i] = gap;
        }
        const double off = gap_[i] * gap_[i], short_by = gap_[i] - R(i, i), on = short_by * short_by + extra;
        if (tried_[i] == 0) first_[i] = on < off;
        const u8 bit = tried_[i] == 0 ? first_[i] : 1 - first_[i];
        ++tried_[i];
        ++nodes;
        count -= state_[i];
        state_[i] = bit;
        if (bit) on_[count++] = i;
        partial_[i] = partial_[i + 1] + (bit ? on : off);
        if (partial_[i] >= best + offset - slack) {
            if (tried_[i] == 1) tried_[i] = 2;  // the other bit is no better
            continue;
        }
        if (i > 0) {
            --i;
            continue;
        }
        for (i64 j = 0; j < K_; ++j) trial_[order_[j]] = state_[j];
        // not the sum along the path: what is compared is always this form
        const double value = row_.cost(trial_.data, p, charge);
        if (value < best) {
            best = value;
            for (i64 k = 0; k < K_; ++k) z[k] = trial_[k];
        }
    }
    if (best < before - slack) return true;
    for (i64 k = 0; k < K_; ++k) z[k] = start_[k];
    return false;
}

}  // namespace features
