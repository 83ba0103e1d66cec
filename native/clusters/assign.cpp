// Assignments of dense rows in one call: one of a span, or several of a short table with the centres moved between.
#include "border.h"
#include "clusters/bounds.h"
#include "clusters/nearest.h"
#include "rows/exact_sums.h"
#include "rows/sums.h"

namespace {

constexpr i64 BLOCK = 16384;  // entries of rows that are worked on together

template <class R> using Look = std::tuple<Mat<const R>, Vec<const R>, Three>;
using Assigned = std::tuple<bool, i64, i64, double>;
using Rule = std::tuple<i64, i64, double, double, bool>;
using Descent = std::tuple<i64, bool, i64, i64>;

// Some rows of the table and their costs at the anchor.
struct Some {
    const i64* rows;
    const double* base;
    i64 n;
};

// The rows, the centres, and what is known of the rounding of their products.
template <class T> struct Problem {
    Mat<const T> X;
    In shift, scale;
    MatIn mean;
    double factor;
    Three norms;
    double size;

    // Costs of rows at the centres in `labels`.
    void own(const i64* rows, i64 n, const i32* labels, double* cost) const {
        distance_dense(X, Rows{rows, n}, shift, scale, Labels{labels, n}, mean, Out{cost, n});
        for (i64 t = 0; t < n; ++t) cost[t] *= factor;
    }
};

// What it takes to look at packed rows: the centres as the tile reads them, and room for what is found.
template <class R> class Sight {
  public:
    Sight(const Look<R>& look, const Three& norms, double size)
        : centres(std::get<0>(look), std::get<1>(look)), weigh(std::get<2>(look), norms, size) {}

    // Nearest centres of a run of packed rows and bounds on their costs at all others; returns how many decisions are
    // open: their bounds are NaN.
    i64 judge(const R* tiles, i64 m, const double* __restrict base, i32* labels, double* __restrict bound) {
        nearest_packed(tiles, centres, m, labels, least, second);
        for (i64 t = 0; t < m; ++t) slack[t] = 0.0;
        const i64 count = open_alike(double(centres.p), m, base, weigh, least, second, slack, unsure);
        for (i64 t = 0; t < m; ++t) bound[t] = second[t] + base[t] - 2 * slack[t];
        if (centres.K == 1) return 0;
        for (i64 t = 0; t < count; ++t) bound[unsure[t]] = NOT_A_NUMBER;
        return count;
    }

    // The same for any number of rows, which are packed into `tiles`.
    template <class T> i64 judge(const Problem<T>& problem, const Some& some, R* tiles, i32* labels, double* bound) {
        i64 count = 0;
        for (i64 start = 0; start < some.n; start += run) {
            const i64 m = smaller(run, some.n - start);
            pack(problem.X, some.rows + start, m, problem.shift, problem.scale, tiles);
            count += judge(tiles, m, some.base + start, labels + start, bound + start);
        }
        return count;
    }

    static constexpr i64 run = ROWS_OF_RUN<R>;

  private:
    const Panels<R> centres;
    const Weighing weigh;
    double least[run], second[run], slack[run];
    i64 unsure[run];
};

// Room for a run of rows; zeros, as lanes may stay unused.
template <class R> struct Tiles : Room<R> {
    explicit Tiles(i64 columns) : Room<R>(Sight<R>::run * columns, R(0)) {}
};

// Another look at the decisions that the first left open; returns how many still are.
template <class T> i64 look_again(i64 doubts, const Problem<T>& problem, const Some& some, const Look<double>& look,
                                  i32* labels, double* bound) {
    if (!doubts) return 0;
    const Room<i64> place(doubts), row(doubts);
    const Room<double> base(doubts), closer(doubts);
    const Room<i32> again(doubts);
    i64 m = 0;
    for (i64 t = 0; t < some.n && m < doubts; ++t)
        if (bound[t] != bound[t]) place[m] = t, row[m] = some.rows[t], base[m] = some.base[t], ++m;
    const Tiles<double> tiles(problem.X.p);
    Sight<double> sight(look, problem.norms, problem.size);
    const i64 still = sight.judge(problem, {row.data, base.data, m}, tiles.data, again.data, closer.data);
    for (i64 t = 0; t < m; ++t) labels[place[t]] = again[t], bound[place[t]] = closer[t];
    return still;
}

// Assignment of one block of rows after the other. Each returns whether a decision is left open.
template <class T, class R> class Assignment {
  public:
    Assignment(const Problem<T>& problem, const Look<R>& first, const Look<double>& second, i64 known_rows)
        : problem(problem),
          second(second),
          tiles(problem.X.p),
          sight(first, problem.norms, problem.size),
          left(known_rows),
          row(known_rows),
          base(known_rows),
          closer(known_rows),
          found(known_rows) {}

    bool all(const Some& some, i32* labels, double* bound, double* cost) {
        if (look(some, labels, bound)) return true;
        problem.own(some.rows, some.n, labels, cost);
        return false;
    }

    // Rows stay where they are if their bounds tell that no other centre is nearer.
    bool unsettled_ones(const Some& some, i32* labels, double* bound, double* cost) {
        problem.own(some.rows, some.n, labels, cost);
        const i64 open = unsettled(In{cost, some.n}, In{some.base, some.n}, problem.size, In{bound, some.n}, left);
        for (i64 t = 0; t < open; ++t) row[t] = some.rows[left[t]], base[t] = some.base[left[t]];
        if (look({row.data, base.data, open}, found.data, closer.data)) return true;
        i64 fresh = 0;
        for (i64 t = 0; t < open; ++t) {
            const i64 at = left[t];
            bound[at] = closer[t];
            if (found[t] == labels[at]) continue;
            labels[at] = found[fresh] = found[t], row[fresh] = row[t], left[fresh] = at, ++fresh;
        }
        problem.own(row.data, fresh, found.data, closer.data);
        for (i64 t = 0; t < fresh; ++t) cost[left[t]] = closer[t];
        return false;
    }

    i64 compared = 0, doubted = 0;

  private:
    bool look(const Some& some, i32* labels, double* bound) {
        const i64 doubts = sight.judge(problem, some, tiles.data, labels, bound);
        compared += some.n, doubted += doubts;
        return look_again(doubts, problem, some, second, labels, bound) > 0;
    }

    const Problem<T>& problem;
    const Look<double>& second;
    const Tiles<R> tiles;
    Sight<R> sight;
    const Room<i64> left, row;
    const Room<double> base, closer;
    const Room<i32> found;
};

// Copy labels; whether all are those of K centres. Without a branch inside: vector code.
bool copy_labels(Labels from, i64 K, i32* __restrict to) {
    const std::uint32_t limit = std::uint32_t(smaller(K, i64(std::numeric_limits<i32>::max())));
    int bad = 0;
    for (i64 t = 0; t < from.n; ++t) {
        to[t] = from[t];
        bad |= std::uint32_t(from[t]) >= limit;
    }
    return !bad;
}

template <class T, class R> Assigned assign_dense(Mat<const T> X, Rows rows, In shift, In scale, In weight, MatIn mean,
                                                  double factor, std::tuple<Look<R>, Look<double>> looks, In base,
                                                  In unit, In alone, Three norms, double size, double lam, bool known,
                                                  Vec<i32> before, Out low, Out cost, Ledger ledger, Out reach) {
    const i64 n = rows.n, block = larger(BLOCK / larger(X.p, i64(1)), i64(RUN));
    const Problem<T> problem{X, shift, scale, mean, factor, norms, size};
    Assignment<T, R> assignment(problem, std::get<0>(looks), std::get<1>(looks), known ? smaller(block, n) : 0);
    const Room<i32> labels(n);
    const i64 L = std::get<2>(ledger).p;
    const auto undecided = [&](i64 done) {  // what has been added is taken out again
        if (L)
            move_dense(X, rows.part(0, done), shift, scale, weight, Labels{labels.data, done}, before.part(0, done),
                       ledger);
        return Assigned{true, 0, 0, 0.0};
    };
    require(mean.n > 0, "there must be a centre");
    require(!L || L >= mean.n, "the ledger must have room for every centre, or for none");
    for (i64 i = 0; L && i < n; ++i)
        require(before[i] >= -1 && before[i] < L, "before must hold labels of the ledger, or -1");
    for (i64 start = 0; start < n; start += block) {  // rows stay in the cache until nothing more is asked of them
        const i64 m = smaller(block, n - start), stop = start + m;
        const Some some{rows.data + start, base.data + start, m};
        i32* mine = labels.data + start;
        double *bound = low.data + start, *paid = cost.data + start;
        if (known) require(copy_labels(before.part(start, stop), mean.n, mine), "before must hold labels if known");
        if (known ? assignment.unsettled_ones(some, mine, bound, paid) : assignment.all(some, mine, bound, paid))
            return undecided(start);
        const In once = unit.n ? unit.part(start, stop) : unit, single = alone.n ? alone.part(start, stop) : alone;
        if (count_near(In{paid, m}, once, single, In{some.base, m}, size, lam)) return undecided(start);
        if (L)
            move_dense(X, Rows{some.rows, m}, shift, scale, weight, before.part(start, stop), Labels{mine, m}, ledger);
    }
    const auto [changed, _] = tally(weight, labels, cost, before, reach);
    return {false, assignment.compared, assignment.doubted, changed};
}

// The products of both looks with all centres: coefficients and offsets.
template <class R> class Products {
  public:
    Products(i64 K, i64 p) : K(K), p(p), coefs(K * p), offset(K), short_coefs(K * p), short_offset(K) {}

    template <class T> void update(Problem<T>& problem, In anchor) {
        const MatIn mean = problem.mean;
        const double factor = problem.factor;
        double at_anchor = 0.0, largest = 0.0, longest = 0.0;
        for (const double value : anchor) at_anchor += value * value;
        for (i64 k = 0; k < mean.n; ++k) {
            double square = 0.0, norm = 0.0, *coef = coefs.data + k * mean.p;
            for (i64 j = 0; j < mean.p; ++j) {
                coef[j] = 2 * factor * (mean[k][j] - anchor[j]);
                square += mean[k][j] * mean[k][j];
                norm += coef[j] * coef[j];
            }
            offset[k] = factor * (square - at_anchor);
            largest = larger(largest, factor * square), longest = larger(longest, norm);
        }
        for (i64 a = 0; a < coefs.n; ++a) short_coefs[a] = R(coefs[a]);
        for (i64 k = 0; k < mean.n; ++k) short_offset[k] = R(offset[k]);
        problem.size = largest + factor * at_anchor;
        problem.norms = {1 / factor, std::sqrt(at_anchor), std::sqrt(longest)};
    }
    Look<R> first(const Three& limits) const { return {short_coefs.as(K, p), short_offset, limits}; }
    Look<double> second(const Three& limits) const { return {coefs.as(K, p), offset, limits}; }

  private:
    const i64 K, p;
    const Room<double> coefs, offset;
    const Room<R> short_coefs, short_offset;
};

// As numpy's max(values) > limit, which is false if any is not a number, and min(values) <= 0 likewise.
bool largest_exceeds(In values, double limit) {
    bool beyond = false;
    for (const double value : values) {
        if (value != value) return false;
        beyond |= value > limit;
    }
    return beyond;
}
bool any_empty(In mass) {
    bool empty = false;
    for (const double value : mass) {
        if (value != value) return false;
        empty |= value <= 0;
    }
    return empty;
}

template <class T, class R> Descent descend_dense(Mat<const T> X, Rows rows, In shift, In scale, In weight, In base,
                                                  In anchor, double factor, double lam, Rule rule, Vec<const R>,
                                                  std::tuple<Three, Three> limits, MatOut mean, Vec<i32> labels,
                                                  Out low, Out cost, Ledger ledger, Out reach, MatOut trace) {
    auto [pause, wait, tol, whole, may_open] = rule;
    const double near = lam < INF ? lam : NOT_A_NUMBER;
    const i64 n = rows.n, tiles = (n + LANES<R> - 1) / LANES<R>;
    const Room<R> packed(tiles * LANES<R> * X.p, R(0));
    pack(X, rows.data, n, shift, scale, packed.data);
    const Room<i32> chosen(n), counted(n, -1);  // labels, and those that the sums are of
    const Room<double> total(mean.n * mean.p), mass(mean.n);
    const Some all{rows.data, base.data, n};
    Problem<T> problem{X, shift, scale, mean, factor, {}, 0.0};
    Products<R> products(mean.n, mean.p);
    i64 doubted = 0, t = 0;
    require(mean.n > 0 && trace.n > 0, "there must be a centre, and a line of the trace");
    for (;; ++t) {
        products.update(problem, anchor);
        for (double& most : reach) most = 0.0;
        Sight<R> sight(products.first(std::get<0>(limits)), problem.norms, problem.size);
        i64 doubts = 0;
        for (i64 start = 0; start < n; start += sight.run)
            doubts += sight.judge(packed.data + start * X.p, smaller(sight.run, n - start), base.data + start,
                                  chosen.data + start, low.data + start);
        doubted += doubts;
        bool undecided = look_again(doubts, problem, all, products.second(std::get<1>(limits)), chosen.data, low.data);
        if (!undecided) {
            problem.own(rows.data, n, chosen.data, cost.data);
            undecided = count_near(cost, {}, {}, base, problem.size, near);
        }
        if (undecided) return {t, false, (t + 1) * n, doubted};
        move_dense(X, rows, shift, scale, weight, counted, chosen, ledger);
        for (i64 i = 0; i < n; ++i) counted[i] = chosen[i];
        const auto [changed, _] = tally(weight, chosen, cost, labels, reach);
        double most = 0.0;
        for (const double far : reach) most = larger(most, far);
        const double paid = sum_of_costs(weight, cost, std::get<1>(ledger), most);
        trace[t][0] = paid, trace[t][1] = changed, trace[t][2] = problem.size;
        const bool still = changed / whole <= tol;
        const bool opens = may_open && largest_exceeds(reach, lam) && (pause >= wait || still);
        if (opens || still || t + 1 == trace.n) break;
        read_sums(ledger, total.as(mean.n, mean.p), mass);
        if (any_empty(mass)) break;
        for (i64 k = 0; k < mean.n; ++k)
            for (i64 j = 0; j < mean.p; ++j) mean[k][j] = total[k * mean.p + j] / mass[k];
        ++pause;
    }
    return {t + 1, true, (t + 1) * n, doubted};
}

}  // namespace

static const border::Kernel kernels[] = {
    border::kernel<assign_dense<double, double>, assign_dense<float, float>, assign_dense<double, float>,
                   assign_dense<float, double>>(
        "assign_dense(X[n,p], rows[n]<n, shift[p], scale[n]?, weight[n]?, mean[K,p], factor, "
        "looks(first(coef[K,p], offset[K], limits(eps, tiny, largest)), "
        "second(coef[K,p], offset[K], limits(eps, tiny, largest))), "
        "base[n], unit[n]?, alone[n]?, norms(per_root, at_anchor, reach), size, lam, known, before[n], low[n], "
        "cost[n], ledger(inverse[p+1], whole, parts[P,L,p+1], limbs[P+1,L,p+1], held[1]), reach[K])"),
    border::kernel<descend_dense<double, double>, descend_dense<float, float>, descend_dense<double, float>,
                   descend_dense<float, double>>(
        "descend_dense(X[n,p], rows[n]<n, shift[p], scale[n]?, weight[n]?, base[n], anchor[p], factor, lam, "
        "rule(pause, wait, tol, whole, may_open), first[*], limits(first(eps, tiny, largest), "
        "second(eps, tiny, largest)), mean[K,p], labels[n], low[n], cost[n], "
        "ledger(inverse[p+1], whole, parts[P,K,p+1], limbs[P+1,K,p+1], held[1]), reach[K], trace[*,3])"),
};
static const border::Publish publish(kernels);
