// The entries of one row of a sparse table.
#pragma once
#include "views.h"

// Where they begin and end. What would lead beyond the table is an error; to look costs little beside what follows.
struct Entries {
    i64 first, last;
    KF_INLINE Entries(Rows indptr, Labels indices, i64 row) : first(indptr[row]), last(indptr[row + 1]) {
        require(0 <= first && first <= last && last <= indices.n, "indptr leads beyond the entries");
    }
    KF_INLINE Entries(Rows indptr, Labels indices, i64 row, i64 columns) : Entries(indptr, indices, row) {
        int beyond = 0;  // vector code: nothing ends the loop
        for (i64 q = first; q < last; ++q) beyond |= indices[q] < 0 || indices[q] >= columns;
        require(!beyond, "indices lead beyond the columns");
    }
};
