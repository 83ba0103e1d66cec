// Posteriors of Gaussians with full covariance, and the sticks of their mixture.
#pragma once
#include "views.h"

bool wishart_posterior(In mass, MatIn first, Cube<const double> second, MatIn about, In prior_mean, MatIn prior_scale,
                       double beta, MatOut mean, Cube<double> scale, Cube<double> root, Out log_det);
void wishart_form(In beta, In nu, Cube<const double> root, In log_det, Cube<double> scaled, Out offset);
void wishart_divergence(MatIn mean, In beta, In nu, Cube<const double> root, In log_det, In prior_mean,
                        MatIn prior_scale, In prior, Out value);
void best_sticks(In sizes, double a1, double a2, MatOut sticks);
double stick_terms(MatIn sticks, double a1, double a2, Out expected);
