// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>

#include "compare_statistics.h"

#define CONFIDENCE	0.95

double sample_mean(const double *values, size_t nr)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < nr; i++)
		sum += values[i];
	return sum / nr;
}

static int compare_values(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

double sample_median(double *values, size_t nr)
{
	qsort(values, nr, sizeof(*values), compare_values);
	return (values[(nr - 1) / 2] + values[nr / 2]) / 2;
}

double sample_deviation(const double *values, size_t nr)
{
	double mean = sample_mean(values, nr), sum = 0;
	size_t i;

	for (i = 0; i < nr; i++)
		sum += (values[i] - mean) * (values[i] - mean);
	return sqrt(sum / (nr - 1));
}

void add_mean(struct estimate *estimate, double weight, const double *values, size_t nr)
{
	double deviation = sample_deviation(values, nr);
	double part = weight * weight * deviation * deviation / nr;

	estimate->value += weight * sample_mean(values, nr);
	estimate->variance += part;
	estimate->dilution += part * part / (nr - 1);
}

/* Integrates cos(x)^power from 0 to @angle by Simpson's rule. */
static double integrate_cosine_power(double angle, double power)
{
	const unsigned int steps = 100;
	double sum = 0;
	unsigned int i;

	for (i = 0; i <= steps; i++) {
		double weight = i == 0 || i == steps ? 1 : i % 2 ? 4 : 2;

		sum += weight * pow(cos(angle * i / steps), power);
	}
	return sum * angle / steps / 3;
}

/*
 * The t that |t| stays below with 95 % probability. With t = tan(x) * sqrt(freedom) the density
 * of t becomes cos(x)^(freedom - 1), but for a factor that makes its integral 1.
 */
static double student_t(double freedom)
{
	double whole, angle;
	unsigned int i;

	whole = sqrt(M_PI) / 2 * exp(lgamma(freedom / 2) - lgamma((freedom + 1) / 2));
	/* Newton's steps: begun below the t of the normal distribution, the least of all. */
	angle = atan(1.95 / sqrt(freedom));
	for (i = 0; i < 8; i++)
		angle += (CONFIDENCE * whole - integrate_cosine_power(angle, freedom - 1)) /
			 pow(cos(angle), freedom - 1);
	return tan(angle) * sqrt(freedom);
}

double half_interval(const struct estimate *estimate)
{
	if (!(estimate->variance > 0 && estimate->dilution > 0))
		return 0;
	return student_t(estimate->variance * estimate->variance / estimate->dilution) *
	       sqrt(estimate->variance);
}
