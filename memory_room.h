/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a test may use of the machine's memory without waking the OOM killer.
 */
#ifndef MEMORY_ROOM_H
#define MEMORY_ROOM_H

#include <stdbool.h>

/**
 * memory_room_lacks() - what stands in the way of using so much memory
 * @bytes: how much would be written to
 * @is_private: is that private memory?
 * @address_space: how much would be mapped
 *
 * Looks at the free memory of the machine, at the memory cgroups that the
 * caller is in, at the overcommit limit and at the caller's own limits.
 *
 * Return: NULL if nothing does, else a constant text that names what the
 * machine lacks.
 */
const char *memory_room_lacks(unsigned long long bytes, bool is_private,
			      unsigned long long address_space);

#endif /* MEMORY_ROOM_H */
