#include <algorithm>
#include <cmath>

#include "border.h"
#include "features/normal_equations.h"
#include "features/one_row.h"
#include "features/products.h"

using namespace features;

namespace {

constexpr double STEEP = 1e-4;        // 1 - leverage of a row that is taken out with care
constexpr double NEGLIGIBLE = 1e-14;  // share of numbers of private features that are not looked at any more
constexpr i64 REFRESH_AFTER = 256;    // row changes after which rounding is cleared away
constexpr i64 DONE = 0, NO_ROOM = 1;

// The sums of an allocation, the inverse of the first with the ridge, the means and their products; of C columns the
// first K are used.
struct State {
    MatOut S, T, M, A, G;
};

struct Prior {
    double dims;          // columns of the data; the rows may be given in fewer, where the others are zero
    double noise, scale;  // variances of noise and of the entries of features
    double rate;          // private features that a row is expected to have
    i64 most;             // ... and may have
};

class Visit {
  public:
    Visit(MatIn X, const Prior& prior, Mat<u8> Z, const State& state, i64 K)
        : X_(X),
          prior_(prior),
          ridge_(prior.noise / prior.scale),
          Z_(Z),
          state_(state),
          K_(K),
          C_(Z.p),
          p_(X.p),
          shared_(C_),
          private_(C_),
          on_(C_),
          order_(C_),
          y_(C_),
          m_(C_ * C_),
          g_(C_ * C_),
          a_(C_ * p_),
          s_(C_ * C_),
          t_(C_ * p_),
          lever_(C_),
          factor_(C_),
          along_(C_),
          cross_(C_),
          forms_(C_),
          gap_(p_),
          weights_(prior.most + 1) {}

    // Draws the features of row n; false if there is no room for them, and nothing has changed.
    bool draw(i64 n, const double* keys, const double* coins, double deal) {
        split(n);
        shuffle(keys);
        take_out(n);
        const bool flipped = draw_bits(n, coins);
        const i64 alone = draw_private(deal);
        if (!flipped && alone == alone_) return true;
        if (count_ + alone > C_) return false;
        put_in(n, alone);
        ++changed_;
        if (++since_ >= REFRESH_AFTER) refresh();
        return true;
    }
    i64 features() const { return K_; }
    i64 changed() const { return changed_; }

  private:
    MatOut minus() const { return m_.as(count_, count_); }
    MatOut gram() const { return g_.as(count_, count_); }
    MatOut means() const { return a_.as(count_, p_); }
    double weight(i64 alone) const { return ridge_ / (ridge_ + double(alone)); }
    double spread(double form, i64 alone) const { return prior_.noise * (1.0 + form) + double(alone) * prior_.scale; }

    // Features that other rows have, and those that this row has for itself.
    void split(i64 n) {
        const u8* z = Z_[n];
        count_ = alone_ = 0;
        for (i64 k = 0; k < K_; ++k)
            if (state_.S(k, k) - (z[k] ? 1.0 : 0.0) > 0.5) {
                shared_[count_] = k;
                y_[count_++] = z[k] != 0;
            } else private_[alone_++] = k;
    }

    // The order in which bits are drawn, by keys that know nothing of them. The order of the columns will not do: it
    // tells of births and deaths, and so of the bits.
    void shuffle(const double* keys) {
        for (i64 i = 0; i < count_; ++i) order_[i] = i;
        std::sort(order_.begin(), order_.begin() + count_,
                  [&](i64 a, i64 b) { return keys[a] < keys[b] || (keys[a] == keys[b] && a < b); });
    }

    // The state of the other rows. Private features only make the row's noise larger, by the scale for each of them:
    // the row then weighs less among the others, and its own columns need not be looked at.
    void take_out(i64 n) {
        const i64 on = list_features(y_.data, count_, on_.data);
        const double w = weight(alone_);
        double leverage = 0.0;
        for (i64 i = 0; i < count_; ++i) {
            const double* row = state_.M[shared_[i]];
            lever_[i] = 0.0;
            for (i64 l = 0; l < on; ++l) lever_[i] += row[shared_[on_[l]]];
        }
        for (i64 l = 0; l < on; ++l) leverage += lever_[on_[l]];
        const double rest = 1.0 - w * leverage;
        solved_ = !(rest >= STEEP) && solve_without(n, on);
        if (solved_) return;
        copy(p_, X_[n], gap_.data);
        for (i64 l = 0; l < on; ++l) add(p_, -1.0, state_.A[shared_[on_[l]]], gap_.data);
        dot_rows({state_.A.data, K_, p_}, gap_, along_);
        const double square = dot(gap_, gap_), safe = larger(rest, 1e-300);
        for (i64 i = 0; i < count_; ++i) {
            factor_[i] = w * lever_[i] / safe;
            cross_[i] = along_[shared_[i]];
        }
        for (i64 i = 0; i < count_; ++i)
            for (i64 l = 0; l < count_; ++l) {
                const double both = square * factor_[l] - cross_[l];
                m_[i * count_ + l] = state_.M(shared_[i], shared_[l]) + lever_[i] * factor_[l];
                g_[i * count_ + l] = state_.G(shared_[i], shared_[l]) + factor_[i] * both - cross_[i] * factor_[l];
            }
        for (i64 i = 0; i < count_; ++i) {
            cross_[i] = (cross_[i] - factor_[i] * square) / safe;
            forms_[i] = lever_[i] / safe;
        }
        form_ = leverage / safe;
        square_ = square / (safe * safe);
    }

    // The same from the sums, where the row is nearly all that some mean rests on.
    bool solve_without(i64 n, i64 on) {
        const MatOut S = s_.as(count_, count_), T = t_.as(count_, p_);
        for (i64 i = 0; i < count_; ++i) {
            for (i64 l = 0; l < count_; ++l) S(i, l) = state_.S(shared_[i], shared_[l]) - (y_[i] && y_[l] ? 1.0 : 0.0);
            S(i, i) += ridge_;
            copy(p_, state_.T[shared_[i]], T[i]);
            if (y_[i]) add(p_, -1.0, X_[n], T[i]);
        }
        if (!invert(S, T, minus(), means(), gram())) return false;
        look_at(n, on);
        return true;
    }

    // What the means of the others miss of row n with the features y, and its products with them.
    void look_at(i64 n, i64 on) {
        copy(p_, X_[n], gap_.data);
        for (i64 l = 0; l < on; ++l) add(p_, -1.0, means()[on_[l]], gap_.data);
        dot_rows(means(), gap_, cross_);
        square_ = dot(gap_, gap_);
        form_ = 0.0;
        for (i64 i = 0; i < count_; ++i) {
            forms_[i] = 0.0;
            for (i64 l = 0; l < on; ++l) forms_[i] += minus()(i, on_[l]);
        }
        for (i64 l = 0; l < on; ++l) form_ += forms_[on_[l]];
    }

    // One sweep of the shared bits, with the private features that there are; returns whether one changed.
    bool draw_bits(i64 n, const double* coins) {
        const double rows = double(X_.n);
        double present = spread(form_, alone_);
        bool any = false;
        for (i64 t = 0; t < count_; ++t) {
            const i64 i = order_[t];
            const double sign = y_[i] ? -1.0 : 1.0;
            const double others = state_.S(shared_[i], shared_[i]) - (Z_(n, shared_[i]) ? 1.0 : 0.0);
            const double square = larger(0.0, square_ - 2.0 * sign * cross_[i] + gram()(i, i));
            const double form = larger(0.0, form_ + 2.0 * sign * forms_[i] + minus()(i, i));
            const double other = spread(form, alone_);
            const double change = 0.5 * (square_ / present - square / other - prior_.dims * std::log(other / present));
            const double odds = std::log(others / (rows - others)) + sign * change;
            const bool bit = coins[i] < 1.0 / (1.0 + std::exp(-odds));
            if (bit == (y_[i] != 0)) continue;
            any = true;
            y_[i] = bit;
            square_ = square;
            form_ = form;
            present = other;
            add(count_, -sign, gram()[i], cross_.data);
            add(count_, sign, minus()[i], forms_.data);
        }
        return any;
    }

    // The number of private features: Poisson times the density of the row.
    i64 draw_private(double deal) const {
        const double step = std::log(prior_.rate), peak = square_ / prior_.dims;
        double prior = 0.0, largest = -INF, total = 0.0;
        i64 last = 0;
        for (i64 j = 0;; ++j) {
            const double v = spread(form_, j);
            if (j) prior += step - std::log(double(j));
            weights_[j] = prior - 0.5 * (prior_.dims * std::log(v) + square_ / v);
            largest = larger(largest, weights_[j]);
            last = j;
            // from here on the density falls, and each weight is less than half of the one before
            const bool falls = v >= peak && 2.0 * prior_.rate < double(j + 1);
            if (j >= prior_.most || (falls && std::exp(weights_[j] - largest) < NEGLIGIBLE)) break;
        }
        for (i64 j = 0; j <= last; ++j) total += weights_[j] = std::exp(weights_[j] - largest);
        double below = 0.0;
        for (i64 j = 0; j < last; ++j) {
            below += weights_[j];
            if (deal * total < below) return j;
        }
        return last;
    }

    // Row n with the features y and so many private ones.
    void put_in(i64 n, i64 alone) {
        if (!solved_)
            for (i64 i = 0; i < count_; ++i) {
                copy(p_, state_.A[shared_[i]], means()[i]);
                add(p_, -factor_[i], gap_.data, means()[i]);
            }
        look_at(n, list_features(y_.data, count_, on_.data));
        update_sums(n);
        if (alone < alone_) drop_columns(alone);
        for (; alone_ < alone; ++alone_) private_[alone_] = K_++;
        for (i64 i = 0; i < alone_; ++i) add_private(n, private_[i]);
        update_means();
    }

    void update_sums(i64 n) {
        u8* z = Z_[n];
        for (i64 i = 0; i < count_; ++i) {
            const i64 k = shared_[i];
            if (y_[i] != z[k]) add(p_, y_[i] ? 1.0 : -1.0, X_[n], state_.T[k]);
            for (i64 l = 0; l < count_; ++l)
                state_.S(k, shared_[l]) += double(y_[i] * y_[l]) - (z[k] && z[shared_[l]] ? 1.0 : 0.0);
        }
        for (i64 i = 0; i < count_; ++i) z[shared_[i]] = y_[i];
    }

    // Keeps the first private features only; those behind a column that goes move up.
    void drop_columns(i64 alone) {
        const i64 first = private_[alone];
        i64 to = first, kept = 0, next = alone;
        for (i64 k = first; k < K_; ++k) {
            if (next < alone_ && private_[next] == k) {
                ++next;
                continue;
            }
            on_[kept++] = k;
        }
        for (i64 i = 0; i < Z_.n; ++i) {
            u8* z = Z_[i];
            for (i64 l = 0; l < kept; ++l) z[first + l] = z[on_[l]];
            for (i64 k = first + kept; k < K_; ++k) z[k] = 0;
        }
        for (i64 l = 0; l < kept; ++l, ++to) {
            copy(p_, state_.T[on_[l]], state_.T[to]);
            for (i64 k = 0; k < K_; ++k) state_.S(to, k) = state_.S(on_[l], k);
        }
        for (i64 k = 0; k < to; ++k)
            for (i64 l = 0; l < kept; ++l) state_.S(k, first + l) = state_.S(k, on_[l]);
        for (i64 i = 0; i < count_; ++i)
            for (i64 l = 0; l < kept; ++l)
                if (shared_[i] == on_[l]) {
                    shared_[i] = first + l;
                    break;
                }
        K_ = to;
        alone_ = alone;
    }

    // The sums of a feature that only row n has.
    void add_private(i64 n, i64 k) {
        copy(p_, X_[n], state_.T[k]);
        Z_(n, k) = 1;
        for (i64 i = 0; i < count_; ++i) state_.S(k, shared_[i]) = state_.S(shared_[i], k) = double(y_[i]);
        for (i64 i = 0; i < alone_; ++i) state_.S(k, private_[i]) = state_.S(private_[i], k) = 1.0;
    }

    // The inverse, the means and their products with the row in them; private columns in closed form.
    void update_means() {
        const double w = weight(alone_), rest = 1.0 / (1.0 + w * form_), own = 1.0 / (ridge_ + double(alone_));
        for (i64 i = 0; i < count_; ++i) {
            const i64 k = shared_[i];
            const double share = w * forms_[i] * rest;
            copy(p_, means()[i], state_.A[k]);
            add(p_, share, gap_.data, state_.A[k]);
            for (i64 l = 0; l < count_; ++l) {
                const double other = w * forms_[l] * rest;
                state_.M(k, shared_[l]) = minus()(i, l) - share * forms_[l];
                state_.G(k, shared_[l]) = gram()(i, l) + share * cross_[l] + other * (cross_[i] + square_ * share);
            }
            for (i64 l = 0; l < alone_; ++l) {
                const i64 j = private_[l];
                state_.M(k, j) = state_.M(j, k) = -forms_[i] * rest * own;
                state_.G(k, j) = state_.G(j, k) = (cross_[i] + share * square_) * rest * own;
            }
        }
        for (i64 i = 0; i < alone_; ++i) {
            const i64 k = private_[i];
            for (i64 d = 0; d < p_; ++d) state_.A(k, d) = gap_[d] * rest * own;
            for (i64 l = 0; l < alone_; ++l) {
                state_.M(k, private_[l]) = (i == l ? 1.0 / ridge_ : 0.0) - own / ridge_ + form_ * rest * own * own;
                state_.G(k, private_[l]) = square_ * rest * rest * own * own;
            }
        }
    }

    // All from the sums anew.
    void refresh() {
        since_ = 0;
        const MatOut S = s_.as(K_, K_), M = m_.as(K_, K_), G = g_.as(K_, K_), A = a_.as(K_, p_);
        for (i64 k = 0; k < K_; ++k) {
            copy(K_, state_.S[k], S[k]);
            S(k, k) += ridge_;
        }
        if (!invert(S, {state_.T.data, K_, p_}, M, A, G)) return;
        for (i64 k = 0; k < K_; ++k) {
            copy(K_, M[k], state_.M[k]);
            copy(K_, G[k], state_.G[k]);
            copy(p_, A[k], state_.A[k]);
        }
    }

    MatIn X_;
    Prior prior_;
    double ridge_;
    Mat<u8> Z_;
    State state_;
    i64 K_, C_, p_;
    i64 count_ = 0, alone_ = 0, changed_ = 0, since_ = 0;
    bool solved_ = false;  // whether the means without the row are at hand
    Room<i64> shared_, private_, on_, order_;
    Room<u8> y_;              // of the shared features
    Room<double> m_, g_, a_;  // inverse, products and means without the row, of the shared features
    Room<double> s_, t_;      // sums without it
    Room<double> lever_, factor_, along_;
    Room<double> cross_, forms_;  // products with what is missed of the row; inverse times y
    Room<double> gap_;
    Room<double> weights_;
    double square_ = 0.0, form_ = 0.0;  // of what is missed of the row; y times inverse times y
};

}  // namespace

static std::tuple<i64, i64, i64, i64> gibbs_ibp(MatIn X, MatIn keys, MatIn coins, In deals, i64 dims, double noise,
                                                double scale, double rate, i64 most, i64 first, i64 K, Mat<u8> Z,
                                                MatOut S, MatOut T, MatOut M, MatOut A, MatOut G) {
    require(K >= 0 && K <= Z.p, "K must be between 0 and the columns of Z");
    require(first >= 0, "first must not be negative");
    require(most >= 0 && most <= 1'000'000, "most must be between 0 and a million");
    require(dims >= 1, "dims must be at least 1");
    require(noise > 0 && scale > 0 && rate > 0, "noise, scale and rate must be above 0");
    Visit visit(X, {double(dims), noise, scale, rate / double(larger(X.n, i64(1))), most}, Z, {S, T, M, A, G}, K);
    for (i64 n = first; n < X.n; ++n)
        if (!visit.draw(n, keys[n], coins[n], deals[n])) return {n, NO_ROOM, visit.features(), visit.changed()};
    return {X.n, DONE, visit.features(), visit.changed()};
}

static const border::Kernel kernels[] = {
    border::kernel<gibbs_ibp>(
        "gibbs_ibp(X[n,p], keys[n,C], coins[n,C], deals[n], dims, noise, scale, rate, most, first, K, Z[n,C], S[C,C], "
        "T[C,p], M[C,C], A[C,p], G[C,C])"),
};
static const border::Publish publish(kernels);
