#include "mixtures/node_shares.h"

#include "mixtures/softening.h"
#include "simd/products.h"

namespace {

// Whitened coordinates by which the likeliest component is guessed.
constexpr i64 FEW = 4;

// A score less half the squares of the first few coordinates of lower (row - centre); -inf once it is too low.
KF_INLINE double lowered(double value, const double* row, const double* centre, MatIn lower, i64 few, double least,
                         double* __restrict gap) {
    const i64 head = smaller(few, i64(CHAINS - 1));
    for (i64 e = 0; e < head; ++e) {
        gap[e] = row[e] - centre[e];
        const double along = few_products(0.0, lower[e], gap, e + 1);
        value -= 0.5 * along * along;
        if (value <= least) return -INF;
    }
    // written all at once: a vector cannot be read before what was just written to it one by one has arrived in memory
    for (i64 e = head; e < few; ++e) gap[e] = row[e] - centre[e];
    for (i64 e = head; e < few; ++e) {
        const double along = product(lower[e], gap, e + 1);
        value -= 0.5 * along * along;
        if (value <= least) return -INF;
    }
    return value;
}

// Scores of one node after the other.
class Scoring {
  public:
    explicit Scoring(const NodeComponents& given)
        : given_(given), K_(given.centre.n), D_(given.centre.p), height_(K_), gap_(D_), away_(D_), open_(K_) {
        for (i64 k = 0; k < K_; ++k) height_[k] = given.log_weight[k] - given.offset[k];
    }

    // Scores under the components that are not negligible, -inf for the others; returns the largest.
    double operator()(const double* row, In own, double* scores) {
        return given_.directions.n ? of_many(row, own, scores) : of_few(row, own, scores);
    }

  private:
    double score(i64 k, const double* row, In own, double top) const {
        const double value =
            lowered(height_[k], row, given_.centre[k], given_.lower[k], D_, top + NEGLIGIBLE, gap_.data);
        return value > -INF ? value - product(own.data, given_.packed[k], own.n) : value;
    }

    // A guess at the component with the highest score, from a few coordinates.
    i64 guess(const double* row) const {
        i64 likeliest = 0;
        double top = -INF;
        for (i64 k = 0; k < K_; ++k) {
            const double value =
                lowered(height_[k], row, given_.centre[k], given_.lower[k], smaller(D_, FEW), top, gap_.data);
            if (value > top) likeliest = k, top = value;
        }
        return likeliest;
    }

    double of_few(const double* row, In own, double* scores) const {
        const i64 likeliest = guess(row);
        i64 k = likeliest;
        double top = -INF;
        for (i64 step = 0; step < K_; ++step) {
            scores[k] = score(k, row, own, top);
            top = larger(top, scores[k]);
            k = step >= likeliest ? step + 1 : step;
        }
        return top;
    }

    // Most are ruled out along the direction from the best one so far to theirs. Starts with what was best before.
    double of_many(const double* row, In own, double* scores) {
        double top = -INF;
        i64 best = -1, k = before_, left = K_;
        for (i64 c = 0; c < K_; ++c) open_[c] = c, scores[c] = height_[c];
        for (;;) {
            scores[k] = score(k, row, own, top);
            const bool moved = scores[k] > top;
            if (moved) {
                top = scores[k], best = k;
                for (i64 d = 0; d < D_; ++d) away_[d] = row[d] - given_.centre(k, d);
            }
            // what is left: not k, and not what cannot matter beside the best; scores of these are bounds
            i64 kept = 0, following = -1;
            double highest = -INF;
            for (i64 place = 0; place < left; ++place) {
                const i64 c = open_[place];
                if (c == k) continue;
                if (moved) {
                    const double along = product(given_.directions[best][c], away_.data, D_) + given_.shift(best, c);
                    scores[c] = smaller(scores[c], height_[c] - 0.5 * along * along);
                }
                if (scores[c] <= top + NEGLIGIBLE) {
                    scores[c] = -INF;
                    continue;
                }
                open_[kept++] = c;
                if (scores[c] > highest) highest = scores[c], following = c;
            }
            if (following < 0) break;
            k = following, left = kept;
        }
        before_ = larger(best, i64(0));
        return top;
    }

    const NodeComponents& given_;
    const i64 K_, D_;
    const Room<double> height_, gap_, away_;
    const Room<i64> open_;
    i64 before_ = 0;
};

}  // namespace

void half_precisions(Cube<const double> root, Cube<double> lower, MatOut packed) {
    const i64 D = root.p;
    require(packed.p == D * (D + 1) / 2, "packed must have a column for each entry of a triangle");
    for (i64 k = 0; k < root.n; ++k) {
        double* place = packed[k];
        for (i64 d = 0; d < D; ++d) {
            for (i64 e = d; e < D; ++e) {
                const double value = product(root[k][d] + e, root[k][e] + e, D - e);  // rows of an upper triangle
                *place++ = d == e ? 0.5 * value : value;
            }
            for (i64 e = 0; e < D; ++e) lower[k](e, d) = root[k](d, e);
        }
    }
}

void node_scores(MatIn mean, MatIn second, Cube<const double> lower, MatIn packed, MatIn centre, In offset,
                 MatOut scores) {
    const Room<double> gap(mean.p);
    for (i64 k = 0; k < offset.n; ++k)
        for (i64 i = 0; i < mean.n; ++i) {
            const double value = lowered(-offset[k], mean[i], centre[k], lower[k], mean.p, -INF, gap.data);
            scores(i, k) = value - product(second[i], packed[k], second.p);
        }
}

void share_out(MatIn mean, MatIn second, const NodeComponents& components, MatOut resp, Out lse) {
    Scoring scoring(components);
    soften_rows(resp, lse, [&](i64 i, double* row) { return scoring(mean[i], second.row(i), row); });
}

void node_sums(MatIn mean, MatIn second, In n, MatIn resp, MatIn centre, Out mass, MatOut first, MatOut packed) {
    const i64 D = mean.p;
    require(second.p == D * (D + 1) / 2, "second must have a column for each entry of a triangle");
    const Room<double> room(D);
    double* __restrict gap = room.data;
    for (i64 k = 0; k < centre.n; ++k) {
        const double* __restrict share = resp[k];
        const double* __restrict from = centre[k];
        double* __restrict sum = first[k];
        for (i64 i = 0; i < mean.n; ++i) {
            const double w = n[i] * share[i];
            if (!(w > 0.0)) continue;
            mass[k] += w;
            const double* __restrict row = mean[i];
            for (i64 d = 0; d < D; ++d) {
                gap[d] = row[d] - from[d];
                sum[d] += w * gap[d];
            }
            const double* __restrict own = second[i];
            double* __restrict squares = packed[k];
            for (i64 d = 0; d < D; ++d) {
                const double scaled = w * gap[d];
                for (i64 e = 0; e < D - d; ++e) squares[e] += w * own[e] + scaled * gap[d + e];
                squares += D - d, own += D - d;
            }
        }
    }
}
