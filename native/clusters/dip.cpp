// The dip of sorted samples: how far their distribution is from the nearest unimodal one.
#include "border.h"
#include "segments.h"

namespace {

// Greatest convex minorant of (x, y) on first..last: touching points in `hull`, how many of them is returned, values
// in `line`.
i64 minorant(const double* x, const double* y, i64 first, i64 last, i64* hull, double* line) {
    i64 size = 0;
    for (i64 i = first; i <= last; ++i) {
        while (size > 1) {
            const i64 a = hull[size - 2], b = hull[size - 1];
            if ((y[i] - y[a]) * (x[b] - x[a]) > (y[b] - y[a]) * (x[i] - x[a])) break;
            --size;
        }
        hull[size++] = i;
    }
    line[first] = y[first];
    for (i64 s = 1; s < size; ++s) {
        const i64 a = hull[s - 1], b = hull[s];
        const double slope = (y[b] - y[a]) / (x[b] - x[a]);
        for (i64 i = a + 1; i < b; ++i) line[i] = y[a] + slope * (x[i] - x[a]);
        line[b] = y[b];
    }
    return size;
}

class Dip {
  public:
    explicit Dip(i64 longest)
        : x(longest),
          below(longest),
          above(longest),
          convex(longest),
          concave(longest),
          lower(longest),
          upper(longest) {}

    // Narrow the modal interval until the rest deviates more than it.
    double of(In sample) const {
        i64 first = 0, last = steps_of(sample) - 1;
        double worst = 1.0;
        while (true) {
            const i64 n_lower = minorant(x.data, below.data, first, last, lower.data, convex.data);
            const i64 n_upper = minorant(x.data, above.data, first, last, upper.data, concave.data);
            for (i64 i = first; i <= last; ++i) concave[i] = -concave[i];
            i64 left = widest(lower.data, n_lower), right = widest(upper.data, n_upper);
            const double gap_left = gap(left), gap_right = gap(right);
            if (gap_left > gap_right) {
                i64 s = 0;
                while (upper[s] < left) ++s;
                right = upper[s];
            } else {
                i64 s = n_lower - 1;
                while (lower[s] > right) --s;
                left = lower[s];
            }
            if (larger(gap_left, gap_right) <= worst) break;
            // the ends of the new interval may still hold the mode, where a jump costs nothing
            for (i64 i = first; i < left; ++i) worst = larger(worst, -above[i] - convex[i]);
            for (i64 i = right + 1; i <= last; ++i) worst = larger(worst, concave[i] - below[i]);
            if (left == first && right == last) break;
            first = left, last = right;
        }
        return worst / double(2 * sample.n);
    }

  private:
    // The steps of the distribution function: where they are, and its value below and above, the latter turned over, so
    // that its majorant is a minorant.
    i64 steps_of(In sample) const {
        i64 k = 0;
        for (i64 i = 0; i < sample.n; ++i) {
            if (i == 0 || sample[i] > sample[i - 1]) x[k] = sample[i], below[k] = double(i), ++k;
            above[k - 1] = -double(i + 1);
        }
        return k;
    }
    double gap(i64 i) const { return concave[i] - convex[i]; }

    // Touching point at which the two lines are farthest apart.
    i64 widest(const i64* hull, i64 size) const {
        i64 at = hull[0];
        for (i64 s = 1; s < size; ++s)
            if (gap(hull[s]) > gap(at)) at = hull[s];
        return at;
    }

    const Room<double> x, below, above, convex, concave;
    const Room<i64> lower, upper;
};

void dip(In values, Rows edges, Out dips) {
    require_edges(edges, values.n, "edges must rise, and end within values");
    i64 longest = 0;
    for (i64 s = 0; s < dips.n; ++s) longest = larger(longest, edges[s + 1] - edges[s]);
    const Dip scratch(longest);
    for (i64 s = 0; s < dips.n; ++s)
        dips[s] = edges[s + 1] > edges[s] ? scratch.of(values.part(edges[s], edges[s + 1])) : 0.0;
}

}  // namespace

static const border::Kernel kernels[] = {
    border::kernel<dip>("dip(values[n], edges[S+1], dips[S])"),
};
static const border::Publish publish(kernels);
