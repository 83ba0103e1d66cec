// Searches for all rows of a block and the solve for the means, for whole runs.
#pragma once
#include "views.h"

i64 sweep_rows(MatIn P, MatIn G, In slack, Mat<u8> Z, Out cost);
i64 best_rows(MatIn P, MatIn G, In slack, i64 cap, Flag stop, Mat<u8> Z, Out cost);
std::tuple<i64, double> solve_means(MatIn S, MatIn T, Vec<const bool> dropped, Vec<bool> keep, MatOut A);
