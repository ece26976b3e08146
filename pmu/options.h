/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The plugin's options:
 *
 *	out=FILE		where the counts go, as JSON (required)
 *	LEVEL=SIZE:WAYS:LINE:POLICY
 *				LEVEL is l1i, l1d, l2 or l3; SIZE may end in K or M;
 *				POLICY is lru, plru or random
 *	LEVEL@FIRST-LAST=...	the same for some CPUs, after the option for all
 *	seed=N			seed of random replacement (default 1)
 *	histogram=LEVEL+LEVEL	misses per set of these levels
 *	zva=BYTES		block that DC ZVA clears (default 64): DCZID_EL0.BS,
 *				which QEMU does not show to a plugin
 *	profile=FILE		count by function; FILE is the kernel's System.map
 *	check=on		compare every translation with QEMU's own
 */
#ifndef FT_OPTIONS_H
#define FT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "hierarchy.h"

struct options {
	const char *out;
	const char *profile;
	bool check;
	uint64_t zva_block;
	struct hierarchy_setup caches;
};

/*
 * Reads @argv as QEMU splits it. On failure writes the reason to @error, with the
 * wrong option. What @options points to lives as long as @argv or the process.
 */
bool options_parse(struct options *options, unsigned int nr_cpus, int argc,
		   char **argv, char *error, size_t error_size);

const char *policy_name(enum cache_policy policy);

#endif
