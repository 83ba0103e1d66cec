// Products of the sizes that features have, some dozens by some hundreds; BLAS is not linked.
#pragma once
#include "views.h"

namespace features {

// A' as a matrix of its own.
void transpose(MatIn A, MatOut out);

// Every entry is summed in the order of the terms: the same on all machines but for fused rounding, and A A' symmetric.
void product(MatIn A, MatIn B, MatOut out);             // A B
void product_of_columns(MatIn A, MatIn B, MatOut out);  // A' B

double dot(In a, In b);
// The product of each row with r.
void dot_rows(MatIn A, In r, Out out);

}  // namespace features
