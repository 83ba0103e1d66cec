// The best row of features for one row of data: parts that the kernels share.
//
// A row z costs z G z' - 2 z.p + charge.z besides its square, where G = A A' and p = A x.
#pragma once
#include "views.h"

namespace features {

// Up to this many features all rows are looked at.
constexpr i64 MOST_IN_TABLES = 12;

// A row as a number, first feature lowest; and the opposite.
KF_INLINE i64 index_of(Vec<const u8> z) {
    i64 index = 0;
    for (i64 k = 0; k < z.n; ++k) index |= i64(z[k] != 0) << k;
    return index;
}
KF_INLINE void set_row(i64 index, Vec<u8> z) {
    for (i64 k = 0; k < z.n; ++k) z[k] = (index >> k) & 1;
}

// The features that a row has, in order; returns how many.
KF_INLINE i64 list_features(const u8* z, i64 K, i64* on) {
    i64 count = 0;
    for (i64 k = 0; k < K; ++k) on[count] = k, count += z[k] != 0;
    return count;
}

// What a row costs, and its single bits.
class OneRow {
  public:
    explicit OneRow(MatIn G) : G_(G), on_(G.n) {}
    double cost(const u8* z, const double* p, const double* charge) const;
    // One cyclic sweep of single bits from `first` on; returns whether a bit changed.
    bool sweep(const double* p, const double* charge, double slack, i64 first, u8* z) const;

  private:
    MatIn G_;
    Room<i64> on_;  // features that the row has
};

// y B y' + linear.y of all rows y, of which the first `fixed` features (none or one) are in all.
class Forms {
  public:
    Forms(i64 size, i64 C) : value_(size), cross_(size), none_(C, 0.0) {}
    double operator[](i64 row) const { return value_[row]; }
    const double* at(i64 row) const { return &value_[row]; }
    double largest(i64 rows) const {
        double most = -INF;
        for (i64 i = 0; i < rows; ++i) most = larger(most, value_[i]);
        return most;
    }
    void fill(MatIn B, i64 fixed) const { fill(B, none_.data, fixed); }
    void fill(MatIn B, const double* linear, i64 fixed) const;

  private:
    Room<double> value_, cross_, none_;
};

// All 2^K rows in two halves: z G z' of the first features, of the others, and twice what they share.
class AllRows {
  public:
    struct Found {
        i64 row;
        double cost;
    };
    struct Two {
        double least, next;
    };
    explicit AllRows(i64 K);
    explicit AllRows(MatIn G) : AllRows(G.n) { fill(G); }
    // Makes the tables anew for other means.
    void fill(MatIn G) const;
    // The best row, `guess` if that is one. Halves that cannot be better than the best so far, whatever stands in the
    // other half, are skipped.
    Found least(const double* p, const double* charge, i64 guess) const { return least(look(p, charge), guess); }
    Found least(double bottom, i64 guess) const;
    // For the questions below: a row of data. Returns the least that any first half costs on its own.
    double look(const double* p, const double* charge) const;
    double cost(i64 row) const { return high_[row >> bits_] + (shared_[row] + low_[row & (columns_ - 1)]); }
    // Whether every other row costs at least so much; `bottom` is what `look` has returned, here as elsewhere.
    bool others_cost(double least, i64 row, double bottom) const;
    // The least of all costs and the next, the same if two are; quickest if `row` has the least.
    Two two(i64 row, double bottom) const;

  private:
    i64 bits_, more_;     // features of the first half, and of the other
    i64 columns_, rows_;  // rows of either as numbers; no fewer than a vector has
    Room<double> own_low_, own_high_, shared_;
    Room<double> least_;       // of what each row of the others shares with any row of the first
    Room<double> low_, high_;  // of the row that is looked at
};

// The sphere decoder: depth first with the better bit first, from the row that sweeps end in.
class Decoder {
  public:
    explicit Decoder(MatIn G);
    // Sets z to a row that costs less by more than `slack`, if it finds one in `cap` nodes; returns whether it did.
    bool improve(const double* p, const double* charge, i64 cap, double slack, u8* z) const;

  private:
    void factor(MatIn G);

    i64 K_;
    OneRow row_;
    Room<i64> order_;  // short features first
    Room<double> R_;   // R'R = G in that order; rows without a pivot are zero
    Room<double> c_, gap_, partial_;
    Room<u8> start_, trial_, state_, tried_, first_;
    Room<i64> on_;  // levels whose bit is on, the lowest last
};

}  // namespace features
