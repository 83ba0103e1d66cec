#include <cmath>
#include <cstring>

#include "border.h"
#include "features/best_rows.h"
#include "features/normal_equations.h"
#include "features/one_row.h"
#include "features/products.h"

using namespace features;

namespace {

constexpr i64 GOING = 0, RESTS = 1, DEPENDENT = 2;
constexpr i64 FRESH = 10;  // passes after which the sums are formed anew, so that rounding does not gather
constexpr i64 FEW = 4;     // few rows are at most one in so many

// Z'WZ and Z'WX of an allocation.
class Sums {
  public:
    Sums(MatIn X, In weight, Mat<const u8> Z)
        : X_(X),
          weight_(weight),
          K_(Z.p),
          s_(K_ * K_),
          t_(K_ * X.p),
          z_(Z.n * K_),
          wz_(Z.n * K_),
          before_(Z.n * K_),
          on_(K_) {
        keep(Z);
    }
    MatIn S() const { return s_.as(K_, K_); }
    MatIn T() const { return t_.as(K_, X_.p); }
    void form(Mat<const u8> Z) {
        fill_sums(X_, weight_, Z, z_.as(Z.n, K_), wz_.as(Z.n, K_), s_.as(K_, K_), t_.as(K_, X_.p));
        keep(Z);
    }
    // From the allocation of the last call to one that differs in a few rows.
    void update(Mat<const u8> Z, Rows rows) {
        for (const i64 i : rows) update_row(i, Z[i]);
    }

  private:
    void update_row(i64 i, const u8* now) {
        u8* before = &before_[i * K_];
        const double w = weight_[i];
        for (i64 k = 0; k < K_; ++k)
            if (now[k] != before[k]) {
                const double step = now[k] ? w : -w;
                double* __restrict t = &t_[k * X_.p];
                const double* __restrict x = X_[i];
                for (i64 d = 0; d < X_.p; ++d) t[d] += step * x[d];
            }
        for (const u8* z : {now, static_cast<const u8*>(before)}) {
            const i64 count = list_features(z, K_, on_.data);
            for (i64 k = 0; k < count; ++k)
                for (i64 j = 0; j < count; ++j) s_[on_[k] * K_ + on_[j]] += z == now ? w : -w;
        }
        copy(K_, now, before);
    }
    void keep(Mat<const u8> Z) { copy(Z.n * K_, Z.data, before_.data); }

    MatIn X_;
    In weight_;
    i64 K_;
    Room<double> s_, t_, z_, wz_;
    Room<u8> before_;  // the allocation that they are of
    Room<i64> on_;
};

// A row drawn with probability ~ weight * left; any row if that sums to no more than the floor.
i64 draw_row(In weight, In left, double uniform, double floor) {
    const i64 n = left.n;
    const double mass = dot(weight, left);
    if (!(mass > floor)) return smaller(i64(uniform * double(n)), n - 1);
    const double target = uniform * mass;
    double sofar = 0.0;
    for (i64 i = 0; i < n; ++i) {
        sofar += weight[i] * left[i];
        if (sofar > target) return i;
    }
    return n - 1;
}

// An allocation by columns, so that rows go side by side.
class Columns {
  public:
    // With the first columns filled.
    Columns(Mat<const u8> Z, i64 first) : n_(Z.n), z_(Z.n * Z.p) {
        for (i64 i = 0; i < n_; ++i)
            for (i64 k = 0; k < first; ++k) (*this)(i, k) = Z(i, k) != 0;
    }
    KF_INLINE u8& operator()(i64 i, i64 k) const { return z_[k * n_ + i]; }

    // To the sum of each row twice the values of its features, in their order.
    void add_twice(In value, Out sum) const {
        constexpr i64 TOGETHER = 1024;  // rows that stay in the cache
        for (i64 start = 0; start < n_; start += TOGETHER) {
            const i64 rows = smaller(TOGETHER, n_ - start);
            double* __restrict to = sum.data + start;
            for (i64 k = 0; k < value.n; ++k) {
                const u8* __restrict has = &(*this)(start, k);
                const double twice = 2.0 * value[k];
                for (i64 i = 0; i < rows; ++i) to[i] += has[i] * twice;
            }
        }
    }

  private:
    i64 n_;
    Room<u8> z_;
};

// The best features of all rows, pass after pass. How much nearer a row is to those that it has than to any others says
// how far the means may move before it must be looked at again.
class Search {
  public:
    Search(MatIn X, In square, i64 K, bool exact, i64 cap)
        : X_(X),
          square_(square),
          K_(K),
          exact_(exact),
          cap_(cap),
          tables_(exact && K <= MOST_IN_TABLES),
          all_(tables_ ? K : 0),
          forms_(tables_ ? i64(1) << K : 1, K),
          gram_(K * K),
          turned_(K * X.p),
          products_(X.n * K),
          none_(K, 0.0),
          one_(gram_.as(K, K)),
          slack_(tables_ ? 0 : X.n),
          cost_(tables_ ? 0 : X.n),
          before_(tables_ ? 0 : X.n * K),
          last_(tables_ ? K * X.p : 0),
          step_(tables_ ? K * X.p : 0),
          steps_(tables_ ? K * K : 0),
          some_(tables_ ? X.n * X.p : 0),
          until_(tables_ ? X.n : 0, 0.0),
          rows_(X.n),
          changed_(X.n) {}

    // Improves the rows of Z in place; returns those that changed.
    Rows improve(MatIn A, Flag stop, Mat<u8> Z) {
        const MatOut At = turned_.as(X_.p, K_), G = gram_.as(K_, K_);
        transpose(A, At);
        product(A, At, G);
        largest_ = 0.0;
        for (i64 k = 0; k < K_; ++k) largest_ = larger(largest_, G(k, k));
        return tables_ ? improve_near(A, stop, Z) : improve_all(stop, Z);
    }

  private:
    double slack(i64 i) const { return 1e-12 * (square_[i] + largest_); }

    Rows improve_all(Flag stop, Mat<u8> Z) {
        const MatOut P = products_.as(X_.n, K_), G = gram_.as(K_, K_);
        product(X_, turned_.as(X_.p, K_), P);
        for (i64 i = 0; i < X_.n; ++i) slack_[i] = slack(i);
        copy(X_.n * K_, Z.data, before_.data);
        if (exact_) best_rows(P, G, slack_, cap_, stop, Z, cost_);
        else sweep_rows(P, G, slack_, Z, cost_);
        i64 count = 0;
        for (i64 i = 0; i < X_.n; ++i) {
            changed_[count] = i;
            count += std::memcmp(Z[i], &before_[i * K_], std::size_t(K_)) != 0;
        }
        return {changed_.data, count};
    }

    Rows improve_near(MatIn A, Flag stop, Mat<u8> Z) {
        all_.fill(gram_.as(K_, K_));
        follow(A);
        i64 near = 0, count = 0;
        for (i64 i = 0; i < X_.n; ++i) {
            rows_[near] = i;
            near += !(moved_ < until_[i]);
        }
        const bool whole = near == X_.n;
        for (i64 r = 0; r < (whole ? 0 : near); ++r) copy(X_.p, X_[rows_[r]], &some_[r * X_.p]);
        const MatOut P = products_.as(near, K_);
        product(whole ? X_ : MatIn{some_.data, near, X_.p}, turned_.as(X_.p, K_), P);
        for (i64 r = 0; r < near && !stop; ++r) {
            const i64 i = rows_[r];
            changed_[count] = i;
            count += improve_row(i, P[r], Z.row(i));
        }
        calm_ = FEW * count <= X_.n;
        return {changed_.data, count};
    }

    // As ``best_rows`` does.
    bool improve_row(i64 i, const double* p, Vec<u8> z) {
        const double bottom = all_.look(p, none_.data);
        const i64 now = index_of(z);
        AllRows::Two two{INF, INF};
        if (calm_) two = all_.two(now, bottom);
        const bool best = all_.cost(now) == two.least;
        const AllRows::Found found = best ? AllRows::Found{now, two.least} : all_.least(bottom, now);
        const bool other = found.row != now, better = other && found.cost < one_.cost(z.data, p, none_.data) - slack(i);
        if (better) set_row(found.row, z);
        until_[i] = 0.0;
        if (calm_ && (better || !other)) {
            const double doubt = slack(i) * double(K_ * K_), square = square_[i];
            until_[i] = moved_ + 0.5 * (length(square + two.next, -doubt) - length(square + two.least, doubt));
        }
        return better;
    }

    static double length(double square, double doubt) { return std::sqrt(larger(larger(square, 0.0) + doubt, 0.0)); }

    // How far any sum of the means has moved.
    void follow(MatIn A) {
        const MatOut step = step_.as(K_, X_.p), steps = steps_.as(K_, K_);
        if (begun_) {
            for (i64 i = 0; i < K_ * X_.p; ++i) step_[i] = A.data[i] - last_[i];
            fill_gram(step, steps);
            forms_.fill(steps, 0);
            moved_ += (1.0 + 1e-6) * std::sqrt(larger(forms_.largest(i64(1) << K_), 0.0));
        }
        begun_ = true;
        copy(K_ * X_.p, A.data, last_.data);
    }

    MatIn X_;
    In square_;
    i64 K_;
    bool exact_;
    i64 cap_;
    bool tables_;  // whether all rows are looked at
    AllRows all_;
    Forms forms_;
    Room<double> gram_, turned_, products_, none_;
    OneRow one_;
    Room<double> slack_, cost_;
    Room<u8> before_;
    Room<double> last_, step_, steps_;  // the means before, the difference, and its products
    Room<double> some_;                 // rows that are looked at
    Room<double> until_;                // how far the means may have moved before a row must be
    Room<i64> rows_, changed_;
    double largest_ = 0.0, moved_ = 0.0;
    bool calm_ = false, begun_ = false;  // calm: few rows have changed, so that it pays to know how near the others are
};

}  // namespace

static std::tuple<i64, i64> run_features(MatIn X, In weight, In square, bool exact, i64 cap, Flag stop, bool solved,
                                         Mat<u8> Z, MatOut A, Out trace) {
    const i64 n = Z.n, K = Z.p, p = X.p;
    const double total = dot(weight, square);
    const Room<double> solution(K * p);
    const Room<bool> dropped(K, false), keep(K, false);
    Search search(X, square, K, exact, cap);
    Sums sums(X, weight, Z);
    for (i64 count = 0; count < trace.n; ++count) {
        const Rows changed = search.improve(A, stop, Z);
        if (changed.n == 0 && solved) return {count, RESTS};
        if (count % FRESH == 0 || FEW * changed.n > n) sums.form(Z);
        else sums.update(Z, changed);
        const auto [doubt, gain] = solve_means(sums.S(), sums.T(), dropped, keep, solution.as(K, p));
        if (doubt >= 0) return {count, DEPENDENT};
        for (const bool kept : keep)
            if (!kept) return {count, DEPENDENT};
        copy(K * p, solution.data, A.data);
        solved = true;
        trace[count] = larger(total - gain, 0.0);
        if (stop) return {count + 1, GOING};
    }
    return {trace.n, GOING};
}

static void seed_features(MatIn X, In weight, In uniforms, double floor, i64 first, Out left, Mat<u8> Z, MatOut A) {
    const i64 n = X.n, p = X.p;
    require(n > 0, "there must be a row to draw");
    require(first >= 0 && first <= A.n - uniforms.n, "first must leave room for the features");
    const Room<double> change(n), shared(A.n);
    const Columns columns(Z, first);
    for (i64 k = first; k < first + uniforms.n; ++k) {
        const double uniform = uniforms[k - first];
        require(uniform >= 0.0 && uniform <= 1.0, "uniforms must be from 0 to 1");
        const i64 chosen = draw_row(weight, left, uniform, floor);
        const Vec<double> r = A.row(k);
        for (i64 d = 0; d < p; ++d) r[d] = X(chosen, d);
        for (i64 j = 0; j < k; ++j)
            if (Z(chosen, j))
                for (i64 d = 0; d < p; ++d) r[d] -= A(j, d);
        dot_rows(X, r, change);
        dot_rows({A.data, k, p}, r, shared);
        const double length = dot(r, r);
        for (double& along : change) along = length - 2.0 * along;
        columns.add_twice({shared.data, k}, change);
        for (i64 i = 0; i < n; ++i) {  // without branches, which would be as good as random
            const bool nearer = change[i] < 0.0;
            const double less = larger(left[i] + change[i], 0.0);
            left[i] = nearer ? less : left[i];
            Z(i, k) = columns(i, k) = nearer;
        }
    }
}

static const border::Kernel kernels[] = {
    border::kernel<run_features>(
        "run_features(X[n,p], weight[n], square[n], exact, cap, stop[1], solved, Z[n,K], A[K,p], trace[*])"),
    border::kernel<seed_features>(
        "seed_features(X[n,p], weight[n], uniforms[*], floor, first, left[n], Z[n,K], A[K,p])"),
};
static const border::Publish publish(kernels);
