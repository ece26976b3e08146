/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Physical addresses of instructions.
 *
 * QEMU tells a plugin where an instruction lies in its own memory, not where in
 * the guest's. Guest memory is a few mappings of QEMU's, so one page known both
 * ways places all others of its mapping: a page that was executed and is read as
 * data too, as every kernel's entry does with its literals. From plugin API 5 on
 * QEMU can be asked. Fetches that come before are counted as unplaced.
 */
#ifndef FT_CODE_PAGES_H
#define FT_CODE_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#define MAX_CODE_BLOCKS	8
#define NR_CODE_PAGES	256

struct code_block {
	uint64_t start, end;	/* in QEMU's memory */
	uint64_t pa_minus_host;
};

struct code_pages {
	struct code_block block[MAX_CODE_BLOCKS];
	unsigned int nr_blocks;
	/* Executed since translations last changed, by virtual page. */
	uint64_t generation;
	struct {
		uint64_t va_page;
		uint64_t host;
	} executed[NR_CODE_PAGES];
};

/* The instruction at @va lies at @host. */
void code_pages_executed(struct code_pages *c, uint64_t generation, uint64_t va,
			 uint64_t host);
/* The data at @va lies at @pa. */
void code_pages_read(struct code_pages *c, uint64_t generation, uint64_t va,
		     uint64_t pa);
/* Whether the instruction at @host has a known place, and @pa if so. */
bool code_pages_place(const struct code_pages *c, uint64_t host, uint64_t *pa);

#endif
