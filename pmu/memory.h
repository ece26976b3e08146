/* SPDX-License-Identifier: GPL-2.0 */
#ifndef FT_MEMORY_H
#define FT_MEMORY_H

#include <stdlib.h>

/* Returns @memory. Ends QEMU if there was none, as QEMU itself does. */
static inline void *must_have(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

#endif
