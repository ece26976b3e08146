/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ways to touch a page first. Each is one function whose loop holds exactly
 * the instruction it is named for, so that nothing else takes the fault.
 */
#ifndef TOUCH_H
#define TOUCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the touches that leave a value leave in a page's first eight bytes. */
#define TOUCH_VALUE	0x66747563685f3176ull

struct touch {
	const char *name;
	bool writes;		/* false: the touch only loads */
	uint64_t leaves;	/* in the first eight bytes of each page */
	void (*pages)(char *page, const char *end, size_t step);
	const char *missing;	/* why no machine of this architecture has it */
	bool (*present)(void);	/* NULL: every machine has it */
	const char *absent;	/* why this machine does not, if !present() */
};

/* This architecture's touches; ends in a NULL name. */
extern const struct touch touches[];

/* The touch of that name; every name of --by that is an instruction is there. */
const struct touch *touch_find(const char *name);

/* Why this machine cannot do it; NULL: it can. */
const char *touch_unavailable(const struct touch *touch);

#endif /* TOUCH_H */
