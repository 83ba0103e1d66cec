// Single rows under Gaussians with full covariance, side by side.
#pragma once
#include "mixtures/softening.h"
#include "simd/products.h"

// The direction in which rows of component j are far from component k, in whitened coordinates of k: along it alone
// the distance from k of a row is <directions[k], row - centre[j]> + shift[k], and never more than it is.
void point_to(i64 j, MatIn centre, Cube<const double> lower, MatOut directions, Out shift);

// A block of rows and their scores under all components. Columns and components are made even in number; what is added
// changes nothing.
class RowBlock {
  public:
    RowBlock(Cube<const double> lower, MatIn centre, In height);
    // A row into each lane; copies of the last one where there are no more.
    void load(MatIn rows, i64 start, i64 stop);
    // Directions point away from component j from now on.
    void point_from(i64 j);
    // Scores under all components that are wanted, or not negligible for all rows of the block; and the largest.
    // Component `first` is the first to be tried. Directions, if they point away from it, rule out others.
    void score_all(i64 first, const bool* wanted);

    i64 size() const { return K_; }
    bool is_alive(i64 k) const { return alive_[k]; }  // else its scores are not known
    const double* scores(i64 k) const { return scores_.data + k * ABREAST; }
    const double* top() const { return top_; }
    i64 pointed() const { return pointed_; }

  private:
    bool score(i64 k, const double* least);
    void rule_out(const double* least);

    const i64 K_, D_;
    const Room<double> matrices_, means_, heights_, directions_, shift_, rows_, gap_, scores_;
    const Room<bool> alive_;
    double top_[ABREAST];
    i64 pointed_ = -1;  // component that directions point away from
};
