/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Orders in which pages are touched; --order names one.
 */
#ifndef ORDER_H
#define ORDER_H

#include <stddef.h>
#include <stdint.h>

/* Pages: runs begin at random in slots of this size and never overlap. */
#define ORDER_SLOT	64

/* What happens to a page besides its touch. */
enum extra {
	NOTHING,
	GIVEN_BACK,	/* before the touch, by MADV_DONTNEED */
	NEXT_READ,	/* the page above is read before the touch */
};

struct order {
	const char *name;
	/* Fills @list with the pages to touch, of @pages. Returns their number. */
	uint32_t (*arrange)(uint32_t *list, uint32_t pages, uint32_t number);
	uint32_t number;	/* for .arrange() */
	enum extra extra;
};

/* For .choices of a parameter. */
const char *order_name(size_t place);

/* The order of that name, which must exist. */
const struct order *order_find(const char *name);

#endif /* ORDER_H */
