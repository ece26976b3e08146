/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The contract between kinds.c and update-kinds.c: what one compiler with one
 * -march made of kinds.c is a build.
 */
#ifndef KINDS_H
#define KINDS_H

#include <stddef.h>
#include <stdint.h>

/* The most that kinds in .bss can use, bytes. */
#define BSS_SIZE	(64ul << 20)

/* One kind of update. The memory is all zero before; returns what it read. */
struct kind {
	const char *name;
	uint64_t (*update)(void *memory, size_t size);
	void *bss;		/* the memory that it uses in place of @memory */
};

struct build {
	const char *compiler, *march;
	const struct kind *kinds;	/* ends in a NULL name */
};

/* Adds a build to the list, which the linker gathers; only update-kinds.c reads it. */
#define BUILD(symbol)							\
	static const struct build * const symbol##_entry		\
	__attribute__((__used__, __section__("ft_builds"))) = &(symbol)

/* Weak: ftbench may be linked without any build, to list what it can measure. */
extern const struct build * const __start_ft_builds[] __attribute__((__weak__));
extern const struct build * const __stop_ft_builds[] __attribute__((__weak__));

/* Of the linker: the program's code lies between them. */
extern const char __executable_start[], etext[];

#endif /* KINDS_H */
