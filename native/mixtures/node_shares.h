// Shares of nodes and their sums: the loops in which a product and a sum may become one rounding.
#pragma once
#include "views.h"

// K components: lower triangles that whiten, halves of precisions, packed, means, and what scores are less besides.
// Directions and shifts are none, or tell components apart: the distance of a row from component k, in its whitened
// coordinates, is at least <directions[j, k], row - centre[j]> + shift[j, k], for any j.
struct NodeComponents {
    Cube<const double> lower;
    MatIn packed, centre;
    In offset, log_weight;
    Cube<const double> directions;
    MatIn shift;
};

void half_precisions(Cube<const double> root, Cube<double> lower, MatOut packed);
void node_scores(MatIn mean, MatIn second, Cube<const double> lower, MatIn packed, MatIn centre, In offset,
                 MatOut scores);
void share_out(MatIn mean, MatIn second, const NodeComponents& components, MatOut resp, Out lse);
void node_sums(MatIn mean, MatIn second, In n, MatIn resp, MatIn centre, Out mass, MatOut first, MatOut packed);
