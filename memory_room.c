// SPDX-License-Identifier: GPL-2.0
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "../kselftest.h"
#include "memory_room.h"

/* Page tables, and what others take between the look and the use. */
#define RESERVE_BYTES	(16ULL << 20)

#define NO_LIMIT	ULLONG_MAX

/* The files of one kind of memory cgroup hierarchy. */
struct hierarchy {
	const char *type;	/* in mountinfo */
	const char *controller;	/* in /proc/self/cgroup and mount options */
	const char *limits[2];
	const char *usage;
	const char *file_pages[2];	/* in memory.stat: given up on demand */
};

static const struct hierarchy hierarchies[] = {
	{ "cgroup2", "", { "memory.max", "memory.high" }, "memory.current",
	  { "inactive_file", "active_file" } },
	{ "cgroup", "memory", { "memory.limit_in_bytes" }, "memory.usage_in_bytes",
	  { "total_inactive_file", "total_active_file" } },
};

/* The number after @name in a file of names and numbers; else @otherwise. */
static unsigned long long read_value(const char *path, const char *name,
				     unsigned long long otherwise)
{
	unsigned long long value = otherwise;
	size_t length = strlen(name);
	char line[256], *number, *rest;
	FILE *file = fopen(path, "r");

	if (!file)
		return otherwise;
	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, name, length))
			continue;
		number = line + length;
		if (length && *number != ' ' && *number != ':')
			continue;
		number += strspn(number, ": \t");
		value = strtoull(number, &rest, 10);
		if (rest == number)
			value = otherwise;
		break;
	}
	fclose(file);
	return value;
}

static unsigned long long read_in(const char *directory, const char *file,
				  const char *name,
				  unsigned long long otherwise)
{
	char path[3 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", directory, file);
	return read_value(path, name, otherwise);
}

static unsigned long long minus(unsigned long long a, unsigned long long b)
{
	return a > b ? a - b : 0;
}

/* What one memory cgroup has left. */
static unsigned long long cgroup_room(const struct hierarchy *hierarchy,
				      const char *directory)
{
	unsigned long long usage, limit, least = NO_LIMIT;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(hierarchy->limits) && hierarchy->limits[i]; i++) {
		limit = read_in(directory, hierarchy->limits[i], "", NO_LIMIT);
		least = limit < least ? limit : least;
	}
	if (least == NO_LIMIT)
		return NO_LIMIT;

	usage = read_in(directory, hierarchy->usage, "", 0);
	for (i = 0; i < ARRAY_SIZE(hierarchy->file_pages); i++)
		usage = minus(usage, read_in(directory, "memory.stat",
					     hierarchy->file_pages[i], 0));
	return minus(least, usage);
}

static bool has_option(const char *options, const char *option)
{
	size_t length = strlen(option);
	const char *found;

	if (!length)
		return true;
	for (found = strstr(options, option); found; found = strstr(found + 1, option))
		if ((found == options || found[-1] == ',' || found[-1] == ' ') &&
		    (found[length] == ',' || found[length] == ' ' || !found[length]))
			return true;
	return false;
}

/*
 * Where a hierarchy is mounted. @path is the caller's cgroup in it as the
 * kernel names it, and comes back as a path below the mount point: a container
 * may see no more than a part of the hierarchy.
 */
static bool find_mount(const struct hierarchy *hierarchy, char *mount_point,
		       char *path)
{
	char line[2 * PATH_MAX], root[PATH_MAX], type[64], options[256];
	FILE *file = fopen("/proc/self/mountinfo", "r");
	bool found = false;

	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file)) {
		char *tail = strstr(line, " - ");
		size_t length;

		if (!tail ||
		    sscanf(line, "%*s %*s %*s %4095s %4095s", root, mount_point) != 2 ||
		    sscanf(tail, " - %63s %*s %255s", type, options) != 2 ||
		    strcmp(type, hierarchy->type) ||
		    !has_option(options, hierarchy->controller))
			continue;
		found = true;
		length = strcmp(root, "/") ? strlen(root) : 0;
		if (!strncmp(path, root, length))
			memmove(path, path + length, strlen(path + length) + 1);
		else
			*path = '\0';
	}
	fclose(file);
	return found;
}

/* The caller's cgroup in a hierarchy. */
static bool find_path(const struct hierarchy *hierarchy, char *path)
{
	char line[PATH_MAX + 256], controllers[256];
	FILE *file = fopen("/proc/self/cgroup", "r");
	bool found = false;

	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file)) {
		char *name = strchr(line, ':'), *end;

		if (!name)
			continue;
		end = strchr(++name, ':');
		if (!end)
			continue;
		*end++ = '\0';
		snprintf(controllers, sizeof(controllers), "%s", name);
		end[strcspn(end, "\n")] = '\0';
		if (*hierarchy->controller ?
		    !has_option(controllers, hierarchy->controller) : *controllers)
			continue;
		snprintf(path, PATH_MAX, "%s", end);
		found = true;
	}
	fclose(file);
	return found;
}

/* The least that any memory cgroup between the caller and the root has left. */
static unsigned long long hierarchy_room(const struct hierarchy *hierarchy)
{
	char mount_point[PATH_MAX], path[PATH_MAX], directory[2 * PATH_MAX];
	unsigned long long room, least = NO_LIMIT;
	char *slash;

	if (!find_path(hierarchy, path) || !find_mount(hierarchy, mount_point, path))
		return NO_LIMIT;
	for (;;) {
		snprintf(directory, sizeof(directory), "%s%s", mount_point, path);
		room = cgroup_room(hierarchy, directory);
		least = room < least ? room : least;
		slash = strrchr(path, '/');
		if (!slash)
			return least;
		*slash = '\0';
	}
}

/* What a limit of the caller leaves of a size that /proc/self/status tells. */
static unsigned long long limit_room(int resource, const char *size)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return NO_LIMIT;
	return minus(limit.rlim_cur, read_value("/proc/self/status", size, 0) << 10);
}

static unsigned long long commit_room(void)
{
	const char *meminfo = "/proc/meminfo";

	if (read_value("/proc/sys/vm/overcommit_memory", "", 0) != 2)
		return NO_LIMIT;
	return minus(read_value(meminfo, "CommitLimit", 0),
		     read_value(meminfo, "Committed_AS", 0)) << 10;
}

static unsigned long long free_room(void)
{
	unsigned long long free_kb;

	free_kb = read_value("/proc/meminfo", "MemAvailable", NO_LIMIT >> 10);
	return free_kb << 10;
}

const char *memory_room_lacks(unsigned long long bytes, bool is_private,
			      unsigned long long address_space)
{
	size_t i;

	bytes += RESERVE_BYTES;
	if (limit_room(RLIMIT_AS, "VmSize") < address_space + RESERVE_BYTES)
		return "address space limited by RLIMIT_AS";
	if (limit_room(RLIMIT_DATA, "VmData") < (is_private ? bytes : RESERVE_BYTES))
		return "private memory limited by RLIMIT_DATA";
	if (commit_room() < bytes)
		return "not enough memory within the overcommit limit";
	if (free_room() < bytes)
		return "not enough free memory";
	for (i = 0; i < ARRAY_SIZE(hierarchies); i++)
		if (hierarchy_room(&hierarchies[i]) < bytes)
			return "not enough memory within the memory cgroup limit";
	return NULL;
}
