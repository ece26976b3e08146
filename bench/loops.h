/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The loops of touch.h, which each architecture has in its folder. Each has
 * exactly the instruction it is named for, so that no other takes the fault.
 */
#ifndef LOOPS_H
#define LOOPS_H

#include <stddef.h>
#include <stdint.h>

/* The value that touches leave in a page's first eight bytes, if they do. */
#define TOUCH_VALUE	0x66747563685f3176ull

void touch_load(char *page, const char *end, size_t step);
void touch_store(char *page, const char *end, size_t step);
void touch_load_store(char *page, const char *end, size_t step);
void touch_ldadd(char *page, const char *end, size_t step);
void touch_swp(char *page, const char *end, size_t step);
void touch_cas(char *page, const char *end, size_t step);
void touch_casp(char *page, const char *end, size_t step);
void touch_ldxr(char *page, const char *end, size_t step);

/* Why this machine lacks a loop's instruction; NULL: it has it. */
const char *loop_unavailable(void (*loop)(char *page, const char *end,
					  size_t step));

#endif /* LOOPS_H */
