/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a reader should know beside the figures.
 */
#ifndef COMPARE_NOTES_H
#define COMPARE_NOTES_H

#include "compare_verdict.h"

/**
 * make_notes() - Say what does not forbid to compare, but may explain what comes out.
 * @sandwich: all points
 *
 * Return: one line a note, each with its newline, to be freed; NULL when out of memory.
 */
char *make_notes(const struct sandwich *sandwich);

#endif
