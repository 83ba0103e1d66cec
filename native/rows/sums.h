// Costs of rows to their own centres, and sums of rows by label; always in float64. For T float and double.
#pragma once
#include "views.h"

template <class T>
void distance_dense(Mat<const T> X, Rows rows, In shift, In scale, Labels labels, MatIn mean, Out square);

template <class T>
void add_dense(Mat<const T> X, Rows rows, In shift, In scale, In weight, Labels labels, MatOut total, Out mass);

// The weight of the rows whose label changed, and the weighted sum of costs.
using Tally = std::tuple<double, double>;
Tally tally(In weight, Labels labels, In cost, Vec<i32> before, Out reach);
