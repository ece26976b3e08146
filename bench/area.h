/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory of a kind that --memory names, as operations on memory meet it.
 */
#ifndef AREA_H
#define AREA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "memory.h"
#include "run.h"

typedef int (*area_map)(struct memory *memory, size_t size, size_t align);

struct area {
	struct run *run;
	struct memory memory;
	size_t page;		/* bytes of the folios behind it, at least a page */
	int fd;			/* of the file or shared memory behind it, or -1 */
	int other_fd;		/* the operation's, or -1; it is closed at the end */
	struct memory other;	/* for the operation; .start is NULL without it */
	int who;		/* whose faults count, as getrusage() has it */
	pid_t child;		/* the operation's, or 0; it is killed at the end */
	size_t pool;		/* pages added to the hugeTLB pool, until the end */
	const char *swap;	/* what is swapped to, or NULL; until the end */
	void *state;		/* the operation's, which .finish frees; or NULL */
	area_map map;		/* maps .memory */
};

/* For .shared_params and .shared_metrics of an experiment that has areas. */
const struct param *area_param(size_t place);
const struct metric *area_metric(size_t place);

/*
 * Checks --memory and --size. STATUS_OK and *unavailable: this machine does not
 * give such memory, and this was reported to the run.
 */
enum status area_prepare(struct run *run, bool *unavailable);

/*
 * Maps @size bytes of the run's --memory and fills them, unless "untouched".
 * @area has its .run and .map, and its files are -1.
 */
enum status area_get(struct run *run, struct area *area, size_t size);
void area_put(struct area *area);

/* Maps area->other, which is as aligned as memory. 0 or a negative errno. */
int area_get_other(struct area *area, size_t size);

/* Forks area->child, which stops, and ends it. NULL, or what failed. */
const char *area_fork(struct area *area);
const char *area_end_child(struct area *area);

/* Whether it is of the hugeTLB pool, which has no parts of its pages. */
bool area_is_hugetlb(const struct area *area);

/*
 * The distance of operations that meet a part of the memory: 16 base pages, for
 * all kinds, so that the same calls on "untouched" are the floor of each.
 */
size_t area_stride(void);

/* Stores to each base page. */
void area_write(struct area *area);

/* Adds the metrics of area_metric(). */
void area_report(struct run *run, const struct area *area);

#endif /* AREA_H */
