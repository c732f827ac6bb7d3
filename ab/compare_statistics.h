/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Means of samples, and how far to trust them.
 */
#ifndef COMPARE_STATISTICS_H
#define COMPARE_STATISTICS_H

#include <stddef.h>

/**
 * struct estimate - a weighted sum of means of independent samples
 * @value: the sum
 * @variance: of the sum; the square of its standard error
 * @dilution: sum of the squares of each part of @variance, over that part's degrees of freedom
 */
struct estimate {
	double value;
	double variance;
	double dilution;
};

/** sample_mean() - Return: the mean of @nr values, at least one. */
double sample_mean(const double *values, size_t nr);

/** sample_median() - Sort @nr values, at least one. Return: their median. */
double sample_median(double *values, size_t nr);

/** sample_deviation() - Return: the standard deviation (n-1) of @nr values, at least two. */
double sample_deviation(const double *values, size_t nr);

/** add_mean() - Add @weight times the mean of @nr values, at least two, to an estimate. */
void add_mean(struct estimate *estimate, double weight, const double *values, size_t nr);

/**
 * half_interval() - Half the width of the 95 % confidence interval of an estimate.
 *
 * By Student's t with Welch and Satterthwaite's degrees of freedom.
 *
 * Return: what to add and to subtract; 0 if no sample has any variance.
 */
double half_interval(const struct estimate *estimate);

#endif
