/* SPDX-License-Identifier: GPL-2.0 */
/*
 * QEMU passes one pointer of the plugin to a callback. It contains two things: the
 * callback's context, and a small number in the low bits that the context's
 * alignment leaves free.
 */
#ifndef FT_USERDATA_H
#define FT_USERDATA_H

#include <stdint.h>

/* @number must be below this. */
#define USERDATA_NUMBERS	2048

/* An attribute for the type of a context. */
#define USERDATA_CONTEXT	__attribute__((aligned(USERDATA_NUMBERS)))

static inline void *userdata(void *context, unsigned int number)
{
	return (void *)((uintptr_t)context | number);
}

static inline void *userdata_context(void *udata)
{
	return (void *)((uintptr_t)udata & ~(uintptr_t)(USERDATA_NUMBERS - 1));
}

static inline unsigned int userdata_number(void *udata)
{
	return (uintptr_t)udata & (USERDATA_NUMBERS - 1);
}

#endif
