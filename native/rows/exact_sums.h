// Sums of rows by label that do not depend on the order in which rows are added.
//
// An entry times a power of two (its column's `inverse`) is below 1, and is cut in two parts: a multiple of 2^-36 and
// one of 2^-72; what is left is below its own rounding, or below 2^-73. (There are more parts where entries differ by
// so much that this would count.) Sums of up to HOLDS such parts are exact in float64, in any order; they are then
// carried into whole numbers, `limbs` of 36 bits, lowest first. So a row may also be taken out again without a trace.
// The last column holds the weights.
#pragma once
#include "views.h"

// Columns' inverses, whether weights are whole (parts are then multiplied, as of so many copies), parts, limbs, and the
// weight of the rows in the parts.
using Ledger = std::tuple<In, bool, Cube<double>, Cube<i64>, Vec<i64>>;

// Costs up to `largest`, weighted and added up free of their order.
double sum_of_costs(In weight, In cost, bool whole, double largest);

// Sums and weights as numbers; what was held is carried first.
void read_sums(Ledger ledger, MatOut total, Out mass);

// Rows whose label has changed are moved from the sums of the label before to those of the new one; -1 is none.
template <class T>
void move_dense(Mat<const T> X, Rows rows, In shift, In scale, In weight, Labels before, Labels labels, Ledger ledger);
