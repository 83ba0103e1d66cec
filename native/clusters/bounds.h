// Which decisions products leave open, and which rows a bound cannot settle.
#pragma once
#include <cmath>

#include "views.h"

using Three = std::tuple<double, double, double>;

// How far rounding may be off at a row, from the largest terms of its products.
struct Weighing {
    double eps, tiny, largest, per_root, at_anchor, reach, size;
    Weighing(const Three& limits, const Three& norms, double s)
        : eps(std::get<0>(limits)),
          tiny(std::get<1>(limits)),
          largest(std::get<2>(limits)),
          per_root(std::get<0>(norms)),
          at_anchor(std::get<1>(norms)),
          reach(std::get<2>(norms)),
          size(s) {}
    // Fills slack and returns whether the decision is open; without branches, so that loops become vector code.
    KF_INLINE bool operator()(double columns, double far, double& least, double& second, double& slack) const {
        const double total = slack + far + size + reach * (std::sqrt(far * per_root) * (1 + 1e-9) + at_anchor);
        const bool known = (total < largest) & (std::fabs(least) < INF);
        const double error = known ? (columns + 4) * (eps * total + tiny) : INF;
        const double one = known ? least : 0.0, two = known ? second : 0.0;
        least = one, second = two, slack = error;
        return !(two - one > 2 * error);
    }
};

i64 open_alike(double columns, i64 n, const double* base, const Weighing& weigh, double* least, double* second,
               double* slack, i64* rows);
i64 unsettled(In cost, In base, double size, In low, Vec<i64> rows);
i64 count_near(In cost, In unit, In alone, In base, double size, double lam);
i64 near_threshold(In cost, In unit, In alone, In base, double size, double lam, Vec<i64> rows);
