#include <cmath>

#include "border.h"
#include "features/best_rows.h"
#include "features/normal_equations.h"
#include "features/one_row.h"
#include "features/products.h"
#include "simd/vectors.h"

using namespace features;

namespace {

constexpr double ESSENTIAL = 1e-9;  // 1 - leverage of a row that cannot be taken out, ...
constexpr double STEEP = 1e-4;      // ... and of one that must be with care
constexpr double SUPPORT = 1e-9;    // share of the largest entry below which an entry of a null vector is rounding
constexpr i64 REFRESH_AFTER = 256;  // row changes after which rounding is cleared away
constexpr double WIDE = 0.25;       // leverage from which on no row would be far enough
constexpr double SPARE = 1.1;       // how much larger leverages may become while what is known of rows still holds
constexpr double ROUNDING = 1e-12;  // of a cost, as a share of the squared lengths
constexpr i64 GOING = 0, RESTS = 1, DEPENDENT = 2;             // how a run ends, ...
constexpr i64 DONE = 0, BIRTH = 1, REPLACED = 2, REFRESH = 3;  // ... and visits

using V = Lanes<double>;
constexpr i64 W = WIDTH / 8;

// The sums of an allocation, the inverse of the first, the means and their products.
struct State {
    MatOut S, T, M, A, G;
};

// Sum of the entries of a row of the matrix at the features listed.
KF_INLINE double sum_at(const double* row, const i64* on, i64 count) {
    double sum = 0.0;
    for (i64 i = 0; i < count; ++i) sum += row[on[i]];
    return sum;
}

// Subtracts a row from the sums; a negative weight adds it.
void take_out(const double* x, double w, const u8* z, MatOut S, MatOut T) {
    for (i64 k = 0; k < S.n; ++k)
        if (z[k]) {
            add(T.p, -w, x, T[k]);
            for (i64 j = 0; j < S.n; ++j)
                if (z[j]) S(k, j) -= w;
        }
}

// The features that may be changed for one row: all 2^C of its rows, or its single bits.
class Chooser {
  public:
    Chooser(i64 C, i64 fixed, bool exact)
        : fixed_(fixed), exact_(exact), tops_(size(C), C), bottoms_(size(C), C), linear_(C), g_(C), m_(C), on_(C) {}

    // Improves y in place, for a row of data that is in none of M and G; returns its cost.
    double improve(double w, double square, const double* p, MatIn M, MatIn G, double slack, Vec<u8> y) const {
        const i64 C = y.n;
        if (!exact_ || C - fixed_ > MOST_IN_TABLES) return flip(w, square, p, M, G, slack, y);
        for (i64 k = 0; k < C; ++k) linear_[k] = -2.0 * p[k];
        tops_.fill(G, linear_.data, fixed_);
        bottoms_.fill(M, fixed_);
        const auto cost = [&](i64 i) { return w * (square + tops_[i]) / (1.0 + w * bottoms_[i]); };
        const i64 row = least(i64(1) << (C - fixed_), w, square), now = index_of(y.part(fixed_, C));
        const double best = cost(row), present = cost(now);
        if (!(best < present - slack)) return present;
        set_row(row, y.part(fixed_, C));
        return best;
    }

  private:
    i64 size(i64 C) const { return i64(1) << smaller(C - fixed_, MOST_IN_TABLES); }

    // The first of the rows that cost the least.
    i64 least(i64 rows, double w, double square) const {
        double best = INF;
        i64 row = 0;
        if (rows < W) {
            for (i64 i = 0; i < rows; ++i) {
                const double value = w * (square + tops_[i]) / (1.0 + w * bottoms_[i]);
                if (value < best) best = value, row = i;
            }
            return row;
        }
        using Places = Lanes<i64>;
        Places at, places = {};
        for (i64 l = 0; l < W; ++l) at[l] = l;
        V bests = splat<V>(INF);
        for (i64 i = 0; i < rows; i += W, at += W) {
            const V value = w * (square + load<V>(tops_.at(i))) / (1.0 + w * load<V>(bottoms_.at(i)));
            places = value < bests ? at : places;
            bests = value < bests ? value : bests;
        }
        for (i64 l = 0; l < W; ++l)
            if (bests[l] < best || (bests[l] == best && places[l] < row)) best = bests[l], row = places[l];
        return row;
    }

    // One cyclic sweep of single bits of y in place; returns its cost.
    double flip(double w, double square, const double* p, MatIn M, MatIn G, double slack, Vec<u8> y) const {
        const i64 C = y.n, count = list_features(y.data, C, on_.data);
        double top = square, bottom = 1.0;
        for (i64 k = 0; k < C; ++k) g_[k] = sum_at(G[k], on_.data, count), m_[k] = sum_at(M[k], on_.data, count);
        for (i64 k = 0; k < C; ++k)
            if (y[k]) {
                top += g_[k] - 2.0 * p[k];
                bottom += w * m_[k];
            }
        double present = w * top / bottom;
        for (i64 k = fixed_; k < C; ++k) {
            const double sign = y[k] ? -1.0 : 1.0;
            const double new_top = top + sign * (2.0 * g_[k] - 2.0 * p[k]) + G(k, k);
            const double new_bottom = bottom + w * (2.0 * sign * m_[k] + M(k, k));
            const double value = w * new_top / new_bottom;
            if (value < present - slack) {
                y[k] = 1 - y[k];
                present = value, top = new_top, bottom = new_bottom;
                for (i64 j = 0; j < C; ++j) g_[j] += sign * G(j, k), m_[j] += sign * M(j, k);
            }
        }
        return present;
    }

    i64 fixed_;
    bool exact_;
    Forms tops_, bottoms_;
    Room<double> linear_;
    Room<double> g_, m_;  // G y and M y
    Room<i64> on_;
};

// Rows that need not be taken out: beside the distance from the means that the row has, all others are far.
//
// Let d be the length of the residual of row z, e that of another row y, s = w z M z' and b the largest w y M y'. By
// Cauchy and Schwarz |w y M z'| <= sqrt(b s). Without the row the means miss y by at least e - sqrt(b s) d / (1 - s),
// and 1 + w y M_- y' <= 1 + b + b s / (1 - s), while z costs w d^2 / (1 - s). So y is no better if
//
//     e >= d (sqrt(b s) / (1 - s) + sqrt((1 + b + b s / (1 - s)) / (1 - s))).
//
// What is known of `rows` rows outlasts changes of the state: d and e change by no more than sums of means have moved.
// As s <= b, y is no better if e >= d (1 + b) / (1 - b).
class Screen {
  public:
    Screen(const State& state, i64 fixed, bool exact, i64 rows)
        : state_(state),
          fixed_(fixed),
          K_(state.S.n - fixed),
          use_(exact && K_ > 0 && K_ <= MOST_IN_TABLES),
          remember_(use_ && rows > 0),
          all_(use_ ? K_ : 0),
          forms_(use_ ? i64(1) << K_ : 0, state.S.n),
          steps_(remember_ ? i64(1) << K_ : 0, state.S.n),
          inner_(use_ ? K_ * K_ : 0),
          charge_(K_, 0.0),
          products_(state.S.n),
          last_(remember_ ? state.A.n * state.A.p : 0),
          step_(remember_ ? state.A.n * state.A.p : 0),
          until_(remember_ ? rows : 0, 0.0) {}

    // To be called when the state has changed.
    void forget() { known_ = filled_ = false; }

    // Whether row n of the data stays as it is and costs no more than lam; never wrongly true.
    bool stays(i64 n, const double* x, double w, double square, double lam, Vec<const u8> z) {
        if (!use_) return false;
        if (!known_) know();
        if (remember_ && moved_ < until_[n]) return true;
        const double b = w * most_;
        if (!(b < WIDE)) return false;
        if (!filled_) fill();
        const i64 row = index_of(z.part(fixed_, K_ + fixed_));
        const double s = w * larger(forms_[row], 0.0), rest = 1.0 - s, cross = b * s / rest;
        const double factor = std::sqrt(b * s) / rest + std::sqrt((1.0 + b + cross) / rest);
        products_in_order(state_.A, state_.S.n, x, products_.data);
        const double origin = fixed_ ? square - 2.0 * products_[0] + state_.G(0, 0) : square;
        const double bottom = all_.look(products_.data + fixed_, charge_.data);
        const double doubt = ROUNDING * (square + double(K_ + 1) * double(K_ + 1) * largest_);
        const double own = larger(origin + all_.cost(row), 0.0) + doubt, far = factor * factor * own + doubt - origin;
        if (w * own > lam * rest) return false;
        if (!remember_) return all_.others_cost(far, row, bottom);
        const AllRows::Two two = all_.two(row, bottom);
        if (all_.cost(row) > two.least || two.next < far) return false;
        const double most = (1.0 + w * cap_) / (1.0 - w * cap_);
        until_[n] = 0.0;
        if (w * cap_ < WIDE)
            until_[n] =
                moved_ + (std::sqrt(larger(origin + two.next - doubt, 0.0)) - most * std::sqrt(own)) / (1.0 + most);
        return true;
    }

  private:
    void know() {
        known_ = true;
        forms_.fill(state_.M, fixed_);
        most_ = forms_.largest(i64(1) << K_);
        if (!remember_) return;
        const i64 size = state_.A.n * state_.A.p;
        if (begun_) {
            const MatOut step = step_.as(state_.A.n, state_.A.p), products = inner_.as(K_, K_);
            for (i64 i = 0; i < size; ++i) step_[i] = state_.A.data[i] - last_[i];
            fill_gram(step, products);
            steps_.fill(products, fixed_);
            moved_ += (1.0 + 1e-6) * std::sqrt(larger(steps_.largest(i64(1) << K_), 0.0));
        }
        if (!(most_ < cap_)) {
            cap_ = SPARE * most_;
            for (double& some : until_) some = 0.0;
        }
        begun_ = true;
        copy(size, state_.A.data, last_.data);
    }
    void fill() {
        filled_ = true;
        if (fixed_)
            for (i64 k = 0; k < K_; ++k) charge_[k] = 2.0 * state_.G(0, k + 1);
        largest_ = fixed_ ? state_.G(0, 0) : 0.0;
        for (i64 k = 0; k < K_; ++k) {
            copy(K_, state_.G[k + fixed_] + fixed_, &inner_[k * K_]);
            largest_ = larger(largest_, inner_[k * K_ + k]);
        }
        all_.fill(inner_.as(K_, K_));
    }

    State state_;
    i64 fixed_, K_;
    bool use_, remember_;
    bool known_ = false, filled_ = false, begun_ = false;
    AllRows all_;
    Forms forms_, steps_;  // z M z' of all rows z; the squares of how far sums of means have moved
    Room<double> inner_;   // G without the fixed column
    Room<double> charge_;  // what that adds
    Room<double> products_;
    Room<double> last_, step_;  // the means before, and the difference
    Room<double> until_;        // how far sums of means may have moved before a row must be looked at
    double most_ = 0.0, largest_ = 0.0;
    double moved_ = 0.0, cap_ = 0.0;  // of `most_` while what is known of the rows holds
};

// One row of data taken out of a state, and put back with other features.
class Visit {
  public:
    Visit(const State& state, double lam, i64 fixed, const Chooser& chooser)
        : state_(state),
          C_(state.S.n),
          p_(state.T.p),
          lam_(lam),
          fixed_(fixed),
          chooser_(chooser),
          m_(C_ * C_),
          g_(C_ * C_),
          a_(C_ * p_),
          s_(C_ * C_),
          t_(C_ * p_),
          products_(C_),
          lever_(C_),
          gap_(C_),
          along_(C_),
          share_(C_),
          rest_(p_),
          on_(C_) {}

    // 1 - leverage of the row that is taken out; the means without it only where they had to be solved for.
    double take(const double* x, double w, const u8* z, double square) const {
        const auto [S, T, M, A, G] = state_;
        const i64 count = list_features(z, C_, on_.data);
        products_in_order(A, C_, x, products_.data);
        double h = 0.0, zp = 0.0, zGz = 0.0;
        for (i64 k = 0; k < C_; ++k) {
            lever_[k] = sum_at(M[k], on_.data, count);
            double gap = products_[k];
            for (i64 i = 0; i < count; ++i) gap -= G(k, on_[i]);
            gap_[k] = gap;
        }
        for (i64 i = 0; i < count; ++i) {
            const i64 k = on_[i];
            h += w * lever_[k];
            zp += products_[k];
            zGz += products_[k] - gap_[k];
        }
        const double rest = 1.0 - h;
        if (rest < ESSENTIAL) return rest;
        if (rest < STEEP) return solve_without(x, w, z) ? rest : 0.0;
        const double rr = square - 2.0 * zp + zGz, rx = square - zp;
        for (i64 k = 0; k < C_; ++k) share_[k] = w * lever_[k] / rest;
        for (i64 k = 0; k < C_; ++k) {
            const double u = share_[k], gk = gap_[k], wv = w * lever_[k];
            along_[k] = products_[k] - u * rx;
            const double* __restrict from_m = M[k], * __restrict from_g = G[k];
            const double* __restrict v = lever_.data, * __restrict g = gap_.data, * __restrict us = share_.data;
            double* __restrict to_m = &m_[k * C_], * __restrict to_g = &g_[k * C_];
            for (i64 j = 0; j < C_; ++j) {
                to_m[j] = from_m[j] + wv * v[j] / rest;
                to_g[j] = from_g[j] - u * g[j] - gk * us[j] + rr * u * us[j];
            }
        }
        return rest;
    }

    // The best features of the row that is out; returns its cost.
    double choose(double w, double square, double slack, Vec<u8> y) const {
        return chooser_.improve(w, square, along_.data, m_.as(C_, C_), g_.as(C_, C_), slack, y);
    }

    // Puts the row, which had features z, back with features y: the means change by two rank-one steps.
    void move(const double* x, double w, const u8* z, const u8* y, double rest) const {
        const auto [S, T, M, A, G] = state_;
        const MatOut A_ = a_.as(C_, p_), M_ = m_.as(C_, C_);
        double* r = rest_.data;
        if (rest >= STEEP) {
            const i64 count = list_features(z, C_, on_.data);
            copy(p_, x, r);
            for (i64 i = 0; i < count; ++i) add(p_, -1.0, A[on_[i]], r);
            for (i64 k = 0; k < C_; ++k) {
                const double factor = w * sum_at(M[k], on_.data, count) / rest;
                copy(p_, A[k], A_[k]);
                add(p_, -factor, r, A_[k]);
            }
        }
        const i64 count = list_features(y, C_, on_.data);
        copy(p_, x, r);
        for (i64 i = 0; i < count; ++i) add(p_, -1.0, A_[on_[i]], r);
        double q = 0.0;
        for (i64 k = 0; k < C_; ++k) lever_[k] = sum_at(M_[k], on_.data, count);
        for (i64 i = 0; i < count; ++i) q += w * lever_[on_[i]];
        for (i64 k = 0; k < C_; ++k) {
            copy(p_, A_[k], A[k]);
            add(p_, w * lever_[k] / (1.0 + q), r, A[k]);
            for (i64 j = 0; j < C_; ++j) M(k, j) = M_(k, j) - w * lever_[k] * lever_[j] / (1.0 + q);
        }
        fill_gram(A, G);
        take_out(x, w, z, S, T);
        take_out(x, -w, y, S, T);
    }

    // For a row that the means of the others depend on: the column to drop (the last that the other rows do not need)
    // if row y then costs less than it, else -1.
    i64 replace(const double* x, double w, const u8* z, double square, double slack, u8* y) const {
        double largest = 0.0;
        i64 drop = -1;
        for (i64 k = 0; k < C_; ++k) largest = larger(largest, std::fabs(lever_[k]));
        for (i64 k = 0; k < C_; ++k)
            if (std::fabs(lever_[k]) > SUPPORT * largest) drop = k;
        if (drop < fixed_) return -1;
        const i64 D = C_ - 1;
        const Room<double> s(D * D), t(D * p_), m(D * D), a(D * p_), g(D * D), along(D);
        const Room<u8> trial(D);
        sums_without(x, w, z);
        for (i64 i = 0; i < D; ++i) {
            const i64 k = i + (i >= drop);
            trial[i] = z[k];
            copy(p_, &t_[k * p_], &t[i * p_]);
            for (i64 j = 0; j < D; ++j) s[i * D + j] = s_[k * C_ + j + (j >= drop)];
        }
        if (D && !invert(s.as(D, D), t.as(D, p_), m.as(D, D), a.as(D, p_), g.as(D, D))) return -1;
        products_in_order(a.as(D, p_), D, x, along.data);
        if (!(chooser_.improve(w, square, along.data, m.as(D, D), g.as(D, D), slack, trial) < lam_ - slack)) return -1;
        y[drop] = 0;
        for (i64 i = 0; i < D; ++i) y[i + (i >= drop)] = trial[i];
        return drop;
    }

  private:
    void sums_without(const double* x, double w, const u8* z) const {
        copy(C_ * C_, state_.S.data, s_.data);
        copy(C_ * p_, state_.T.data, t_.data);
        take_out(x, w, z, s_.as(C_, C_), t_.as(C_, p_));
    }
    bool solve_without(const double* x, double w, const u8* z) const {
        sums_without(x, w, z);
        if (!invert(s_.as(C_, C_), t_.as(C_, p_), m_.as(C_, C_), a_.as(C_, p_), g_.as(C_, C_))) return false;
        products_in_order(a_.as(C_, p_), C_, x, along_.data);
        return true;
    }

    State state_;
    i64 C_, p_;
    double lam_;
    i64 fixed_;
    const Chooser& chooser_;
    Room<double> m_, g_, a_, s_, t_;  // the state without the row
    Room<double> products_;           // of the row with the means
    Room<double> lever_, gap_;        // M z, and what the means miss of the row
    Room<double> along_;              // products with the means without it
    Room<double> share_, rest_;
    Room<i64> on_;
};

}  // namespace

static bool rebuild(MatIn S, MatIn T, MatOut M, MatOut A, MatOut G) { return invert(S, T, M, A, G); }

// Visits rows from `first` on; see the kernel.
static std::tuple<i64, i64, i64, i64> visit_rows(MatIn X, In weight, In square, double lam, i64 fixed, bool exact,
                                                 Flag stop, i64 first, Mat<u8> Z, const State& state, Screen& screen) {
    const auto [S, T, M, A, G] = state;
    const i64 C = Z.p;
    const Chooser chooser(C, fixed, exact);
    const Visit visit(state, lam, fixed, chooser);
    const Room<u8> y(C);
    const double finite = lam < INF ? lam : 0.0;
    i64 changed = 0;
    for (i64 n = first; n < X.n; ++n) {
        if (stop) break;
        const double* x = X[n];
        const double w = weight[n];
        u8* z = Z[n];
        if (screen.stays(n, x, w, square[n], lam, Z.row(n))) continue;
        double largest = 0.0;
        for (i64 k = 0; k < C; ++k) {
            largest = larger(largest, G(k, k));
            y[k] = z[k];
        }
        const double slack = 1e-12 * (finite + w * (square[n] + largest));
        const double rest = visit.take(x, w, z, square[n]);
        if (rest < ESSENTIAL) {
            const i64 drop = lam < INF ? visit.replace(x, w, z, square[n], slack, y.data) : -1;
            if (drop < 0) continue;
            for (i64 k = 0; k < C; ++k) z[k] = y[k];
            return {n, REPLACED, changed + 1, drop};
        }
        const double cost = visit.choose(w, square[n], slack, y);
        bool other = false;
        for (i64 k = 0; k < C; ++k) other = other || y[k] != z[k];
        if (other) {
            ++changed;
            visit.move(x, w, z, y.data, rest);
            screen.forget();
            for (i64 k = 0; k < C; ++k) z[k] = y[k];
        }
        if (cost > lam + slack) return {n, BIRTH, changed, -1};
        if (changed >= REFRESH_AFTER) return {n, REFRESH, changed, -1};
    }
    return {X.n, DONE, changed, -1};
}

static std::tuple<i64, i64, i64, i64> collapsed_rows(MatIn X, In weight, In square, double lam, i64 fixed, bool exact,
                                                     Flag stop, i64 first, Mat<u8> Z, MatOut S, MatOut T, MatOut M,
                                                     MatOut A, MatOut G) {
    require(fixed >= 0 && fixed <= 1 && fixed <= Z.p, "fixed must be 0, or 1 where there is a column");
    require(first >= 0, "first must not be negative");
    const State state{S, T, M, A, G};
    Screen screen(state, fixed, exact, 0);
    return visit_rows(X, weight, square, lam, fixed, exact, stop, first, Z, state, screen);
}

// A pass; returns whether the others can do without every row, and how many rows changed.
static std::tuple<bool, i64> collapsed_pass(MatIn X, In weight, In square, bool exact, Flag stop, Mat<u8> Z, MatOut z,
                                            MatOut wz, const State& state, Screen& screen) {
    const auto [S, T, M, A, G] = state;
    i64 first = 0, changed = 0;
    while (first < X.n && !stop) {
        if (first) fill_sums(X, weight, Z, z, wz, S, T);
        if (!invert(S, T, M, A, G)) return {false, changed};
        screen.forget();
        const auto [n, event, some, drop] = visit_rows(X, weight, square, INF, 0, exact, stop, first, Z, state, screen);
        changed += some;
        first = n + 1;
    }
    return {true, changed};
}

static std::tuple<i64, i64> run_collapsed(MatIn X, In weight, In square, bool exact, Flag stop, Mat<u8> Z, MatOut A,
                                          Out trace) {
    const i64 n = Z.n, K = Z.p, p = X.p;
    const double total = dot(weight, square);
    const Room<double> s(K * K), t(K * p), m(K * K), a(K * p), g(K * K), z(n * K), wz(n * K);
    const State state{s.as(K, K), t.as(K, p), m.as(K, K), a.as(K, p), g.as(K, K)};
    const Room<bool> dropped(K, false), keep(K, false);
    Screen screen(state, 0, exact, n);
    const auto form = [&] { fill_sums(X, weight, Z, z.as(n, K), wz.as(n, K), state.S, state.T); };
    form();
    for (i64 count = 0; count < trace.n; ++count) {
        const auto [whole, changed] =
            collapsed_pass(X, weight, square, exact, stop, Z, z.as(n, K), wz.as(n, K), state, screen);
        if (!whole) return {count, DEPENDENT};
        if (changed) form();
        const auto [doubt, gain] = solve_means(state.S, state.T, dropped, keep, a.as(K, p));
        if (doubt >= 0) return {count, DEPENDENT};
        for (const bool kept : keep)
            if (!kept) return {count, DEPENDENT};
        copy(K * p, a.data, A.data);
        trace[count] = larger(total - gain, 0.0);
        if (stop) return {count + 1, GOING};
        if (changed == 0) return {count + 1, RESTS};
    }
    return {trace.n, GOING};
}

static const border::Kernel kernels[] = {
    border::kernel<run_collapsed>(
        "run_collapsed(X[n,p], weight[n], square[n], exact, stop[1], Z[n,K], A[K,p], trace[*])"),
    border::kernel<collapsed_rows>(
        "collapsed_rows(X[n,p], weight[n], square[n], lam, fixed, exact, stop[1], first, Z[n,C], S[C,C], T[C,p], "
        "M[C,C], A[C,p], G[C,C])"),
    border::kernel<rebuild>("rebuild(S[C,C], T[C,p], M[C,C], A[C,p], G[C,C])"),
};
static const border::Publish publish(kernels);
