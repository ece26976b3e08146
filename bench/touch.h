/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ways to touch a page first, of which --by names one.
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

/* The name of the touch at that place of those that write, or NULL. */
const char *touch_writing(size_t place);

/* The touch of that name, which there must be. */
const struct touch *touch_find(const char *name);

/* Why this machine cannot do it; NULL: it can. */
const char *touch_unavailable(const struct touch *touch);

#endif /* TOUCH_H */
