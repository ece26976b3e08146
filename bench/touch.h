/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ways to touch a page first; --by names one.
 */
#ifndef TOUCH_H
#define TOUCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct touch {
	const char *name;
	bool writes;		/* false: the touch only loads */
	uint64_t leaves;	/* in the first eight bytes of each page */
	/* NULL: no instruction, the kernel touches by MADV_POPULATE_WRITE. */
	void (*pages)(char *page, const char *end, size_t step);
};

/* The name at @place among the touches that write, or NULL. */
const char *touch_writing(size_t place);

/* The touch of that name, which must exist. */
const struct touch *touch_find(const char *name);

/* Why this machine cannot do it; NULL: it can. */
const char *touch_unavailable(const struct touch *touch);

#endif /* TOUCH_H */
