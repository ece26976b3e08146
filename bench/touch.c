// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>
#include <string.h>

#include "touch.h"

const struct touch *touch_find(const char *name)
{
	const struct touch *touch;

	for (touch = touches; touch->name; touch++)
		if (!strcmp(touch->name, name))
			return touch;
	abort();
}

const char *touch_unavailable(const struct touch *touch)
{
	if (touch->missing)
		return touch->missing;
	if (touch->present && !touch->present())
		return touch->absent;
	return NULL;
}
