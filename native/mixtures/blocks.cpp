#include "mixtures/blocks.h"

#include <cmath>

using namespace abreast;

void point_to(i64 j, MatIn centre, Cube<const double> lower, MatOut directions, Out shift) {
    const i64 D = centre.p;
    const Room<double> room(D), whitened(D);
    double* __restrict gap = room.data;
    for (i64 k = 0; k < centre.n; ++k) {
        double total = 0.0;
        for (i64 d = 0; d < D; ++d) gap[d] = centre(j, d) - centre(k, d);
        for (i64 e = 0; e < D; ++e) {
            whitened[e] = product(lower[k][e], gap, e + 1);
            total += whitened[e] * whitened[e];
        }
        shift[k] = std::sqrt(total);
        double* __restrict direction = directions[k];
        for (i64 e = 0; e < D; ++e) {
            const double along = total > 0.0 ? whitened[e] / shift[k] : 0.0;
            const double* __restrict line = lower[k][e];
            for (i64 d = 0; d < e; ++d) direction[d] += line[d] * along;
            direction[e] = 0.0 + line[e] * along;
        }
    }
}

RowBlock::RowBlock(Cube<const double> lower, MatIn centre, In height)
    : K_(height.n),
      D_(centre.p + centre.p % 2),
      matrices_(K_ * D_ * D_, 0.0),
      means_(K_ * D_, 0.0),
      heights_(K_ + K_ % 2, -INF),
      directions_((K_ + K_ % 2) * D_, 0.0),
      shift_(K_ + K_ % 2, 0.0),
      rows_(D_ * ABREAST, 0.0),
      gap_(D_ * ABREAST),
      scores_(K_ * ABREAST),
      alive_(K_) {
    for (i64 k = 0; k < K_; ++k) {
        heights_[k] = height[k];
        for (i64 d = 0; d < centre.p; ++d) {
            means_[k * D_ + d] = centre(k, d);
            for (i64 e = 0; e < centre.p; ++e) matrices_[(k * D_ + d) * D_ + e] = lower[k](d, e);
        }
    }
}

void RowBlock::load(MatIn rows, i64 start, i64 stop) {
    for (i64 i = 0; i < ABREAST; ++i) {
        const double* row = rows[smaller(start + i, stop - 1)];
        for (i64 d = 0; d < rows.p; ++d) rows_[d * ABREAST + i] = row[d];
    }
}

void RowBlock::point_from(i64 j) {
    point_to(j, means_.as(K_, D_), Cube<const double>{matrices_.data, K_, D_, D_}, directions_.as(K_, D_), shift_);
    pointed_ = j;
}

// Scores of the block under one component; false, with scores that are too high, if none is above `least`.
bool RowBlock::score(i64 k, const double* least) {
    const double *mean = means_.data + k * D_, *matrix = matrices_.data + k * D_ * D_;
    double *gap = gap_.data, *out = scores_.data + k * ABREAST;
    V values[PARTS];
    for (int v = 0; v < PARTS; ++v) values[v] = splat<V>(heights_[k]);
    bool above = true;
    for (i64 e = 0; e < D_ && above; e += 2) {
        for (i64 d = e; d < e + 2; ++d)
            for (int v = 0; v < PARTS; ++v) {
                const i64 at = d * ABREAST + v * W;
                store(gap + at, ::load<V>(rows_.data + at) - splat<V>(mean[d]));
            }
        V one[PARTS], two[PARTS];
        two_products(gap, matrix + e * D_, matrix + (e + 1) * D_, e + 2, one, two);
        for (int v = 0; v < PARTS; ++v) values[v] -= 0.5 * (one[v] * one[v] + two[v] * two[v]);
        above = any_above(values, least);
    }
    for (int v = 0; v < PARTS; ++v) store(out + v * W, values[v]);
    return above;
}

// Which components may have scores above `least`; the gaps are those to the component that directions point away from.
void RowBlock::rule_out(const double* least) {
    for (i64 k = 0; k < K_; k += 2) {
        V along[2][PARTS];
        two_products(gap_.data, directions_.data + k * D_, directions_.data + (k + 1) * D_, D_, along[0], along[1]);
        for (i64 c = 0; c < smaller(K_ - k, i64(2)); ++c) {
            for (int v = 0; v < PARTS; ++v) {
                const V far = along[c][v] + splat<V>(shift_[k + c]);
                along[c][v] = splat<V>(heights_[k + c]) - 0.5 * (far * far);
            }
            alive_[k + c] = any_above(along[c], least);
        }
    }
}

void RowBlock::score_all(i64 first, const bool* wanted) {
    double least[ABREAST];
    for (double& value : least) value = -INF;
    const bool finite = score(first, least);
    for (int i = 0; i < ABREAST; ++i) top_[i] = scores(first)[i], least[i] = top_[i] + NEGLIGIBLE;
    if (finite && pointed_ == first) rule_out(least);
    else
        for (bool& alive : alive_) alive = true;
    alive_[first] = true;
    for (i64 k = 0; k < K_; ++k) {
        if (k == first || !(alive_[k] || wanted[k])) continue;
        for (int i = 0; i < ABREAST; ++i) least[i] = wanted[k] ? -INF : top_[i] + NEGLIGIBLE;
        alive_[k] = score(k, least);
        if (!alive_[k]) continue;
        const double* mine = scores(k);
        for (int i = 0; i < ABREAST; ++i) top_[i] = larger(top_[i], mine[i]);
    }
}
