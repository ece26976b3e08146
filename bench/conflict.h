/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hot lines that fill one cache set, and pages of zeroes read in between, for
 * zero-conflict.
 */
#ifndef CONFLICT_H
#define CONFLICT_H

#include <stddef.h>
#include <stdint.h>

#include "geometry.h"
#include "hugepage.h"
#include "run.h"

struct conflict {
	struct geometry geometry;
	uint64_t hot_color;
	struct hugepages hot;
	char *first_hot;	/* the others follow, a way apart */
};

/*
 * Reads the run's parameters and prepares the hot lines. Where the kernel
 * shows page frames, each line's colour is checked against them.
 */
enum status conflict_prepare(struct run *run, struct conflict *conflict,
			     bool *unavailable);

/*
 * Measures: each round reads all hot lines, then one of the @pages pages at
 * @zero, the next one in the next round. Then adds the metrics. They include
 * the page frames of these pages.
 */
enum status conflict_measure(struct run *run, struct conflict *conflict,
			     const char *zero, size_t pages);

void conflict_finish(struct conflict *conflict);

/* For shared_params and shared_metrics of struct experiment. */
const struct param *conflict_param(size_t place);
const struct metric *conflict_metric(size_t place);

#endif /* CONFLICT_H */
