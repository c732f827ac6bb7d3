/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the figures were measured on.
 */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

/**
 * environment_print() - print the "env" line
 * @cpu: the CPU that the rounds are pinned to
 *
 * What cannot be found out is printed as "unknown".
 */
void environment_print(int cpu);

#endif /* ENVIRONMENT_H */
