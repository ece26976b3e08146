// SPDX-License-Identifier: GPL-2.0
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "geometry.h"
#include "hugepage.h"

#define CACHE_DIR	"/sys/devices/system/cpu/cpu%d/cache/index%d/%s"

const char *geometry_level(size_t place)
{
	static const char * const levels[] = { "l1d", "l2" };

	return place < ARRAY_SIZE(levels) ? levels[place] : NULL;
}

static bool read_word(int cpu, int index, const char *name, char *word)
{
	char path[128];
	FILE *file;
	bool ok;

	snprintf(path, sizeof(path), CACHE_DIR, cpu, index, name);
	file = fopen(path, "re");
	if (!file)
		return false;
	ok = fscanf(file, "%31s", word) == 1;
	fclose(file);
	return ok;
}

static uint64_t read_number(int cpu, int index, const char *name)
{
	uint64_t number = 0;
	char word[32];

	/* Only a size has a suffix, and it is K. */
	if (!read_word(cpu, index, name, word) ||
	    sscanf(word, "%lu", &number) != 1)
		return 0;
	return strchr(word, 'K') ? number * 1024 : number;
}

static int find_index(int cpu, const char *level)
{
	char number[32], type[32];

	for (int index = 0; read_word(cpu, index, "level", number); index++) {
		if (number[0] == level[1] &&
		    read_word(cpu, index, "type", type) &&
		    strcmp(type, "Instruction"))
			return index;
	}
	return -1;
}

static enum status check(const struct run *run, const struct geometry *geometry)
{
	uint64_t way = geometry->way_size;

	if (way < 64 || way > HUGEPAGE_BYTES || way & (way - 1))
		return refuse(run, "--way_size %lu is not a power of two from 64 to %lu: give one",
			      way, HUGEPAGE_BYTES);
	return STATUS_OK;
}

enum status geometry_of_run(struct run *run, struct geometry *geometry)
{
	const char *level = param_text(run, "level");
	int cpu = sched_getcpu();
	int index = find_index(cpu, level);
	uint64_t ways = 0, size = 0;

	if (index >= 0) {
		ways = read_number(cpu, index, "ways_of_associativity");
		size = read_number(cpu, index, "size");
	}
	if (!param_given(run, "ways")) {
		if (!ways)
			return refuse(run,
				      "no word from the kernel on cpu%d's %s: give --ways and --way_size",
				      cpu, level);
		param_decide(run, "ways", ways);
	}
	if (!param_given(run, "way_size")) {
		if (!ways || !size)
			return refuse(run, "no word from the kernel on cpu%d's %s: give --way_size",
				      cpu, level);
		param_decide(run, "way_size", size / ways);
	}
	geometry->ways = param_number(run, "ways");
	geometry->way_size = param_number(run, "way_size");
	return check(run, geometry);
}
