#include "border.h"
#include "features/best_rows.h"
#include "features/one_row.h"
#include "features/products.h"

using namespace features;

namespace {

constexpr i64 GOING = 0, RESTS = 1, DEPENDENT = 2;
constexpr i64 FRESH = 10;  // passes after which the sums are formed anew, so that rounding does not gather

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
        for (i64 i = 0; i < Z.n; ++i)
            for (i64 k = 0; k < K_; ++k) {
                z_[i * K_ + k] = Z(i, k);
                wz_[i * K_ + k] = z_[i * K_ + k] * weight_[i];
            }
        const MatIn wz = wz_.as(Z.n, K_);
        product_of_columns(wz, z_.as(Z.n, K_), s_.as(K_, K_));
        product_of_columns(wz, X_, t_.as(K_, X_.p));
        keep(Z);
    }
    // From the allocation of the last call to one that differs in few rows.
    void update(Mat<const u8> Z) {
        for (i64 i = 0; i < Z.n; ++i) update_row(i, Z[i]);
        keep(Z);
    }

  private:
    void update_row(i64 i, const u8* now) {
        const u8* before = &before_[i * K_];
        const double w = weight_[i];
        bool other = false;
        for (i64 k = 0; k < K_; ++k)
            if (now[k] != before[k]) {
                other = true;
                const double step = now[k] ? w : -w;
                double* __restrict t = &t_[k * X_.p];
                const double* __restrict x = X_[i];
                for (i64 d = 0; d < X_.p; ++d) t[d] += step * x[d];
            }
        if (!other) return;
        for (const u8* z : {now, before}) {
            const i64 count = list_features(z, K_, on_.data);
            for (i64 k = 0; k < count; ++k)
                for (i64 j = 0; j < count; ++j) s_[on_[k] * K_ + on_[j]] += z == now ? w : -w;
        }
    }
    void keep(Mat<const u8> Z) {
        for (i64 i = 0; i < Z.n * K_; ++i) before_[i] = Z.data[i];
    }

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

}  // namespace

static std::tuple<i64, i64> run_features(MatIn X, In weight, In square, bool exact, i64 cap, Flag stop, bool solved,
                                         Mat<u8> Z, MatOut A, Out trace) {
    const i64 n = Z.n, K = Z.p, p = X.p;
    const double total = dot(weight, square);
    const Room<double> slack(n), cost(n), solution(K * p), turned(K * p), g(K * K), products(n * K);
    const Room<bool> dropped(K, false), keep(K, false);
    const MatOut At = turned.as(p, K), G = g.as(K, K), P = products.as(n, K);
    Sums sums(X, weight, Z);
    for (i64 count = 0; count < trace.n; ++count) {
        transpose(A, At);
        product(A, At, G);
        product(X, At, P);
        double largest = 0.0;
        for (i64 k = 0; k < K; ++k) largest = larger(largest, G(k, k));
        for (i64 i = 0; i < n; ++i) slack[i] = 1e-12 * (square[i] + largest);
        const i64 changed = exact ? best_rows(P, G, slack, cap, stop, Z, cost) : sweep_rows(P, G, slack, Z, cost);
        if (changed == 0 && solved) return {count, RESTS};
        if (count % FRESH == 0 || 4 * changed > n) sums.form(Z);
        else sums.update(Z);
        const auto [doubt, gain] = solve_means(sums.S(), sums.T(), dropped, keep, solution.as(K, p));
        if (doubt >= 0) return {count, DEPENDENT};
        for (const bool kept : keep)
            if (!kept) return {count, DEPENDENT};
        for (i64 i = 0; i < K * p; ++i) A.data[i] = solution[i];
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
