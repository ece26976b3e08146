// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>
#include <string.h>

#include "loops.h"
#include "touch.h"

static const struct touch touches[] = {
	{ .name = "load", .pages = touch_load },
	{ .name = "store", .writes = true, .leaves = TOUCH_VALUE,
	  .pages = touch_store },
	{ .name = "load-store", .writes = true, .leaves = TOUCH_VALUE,
	  .pages = touch_load_store },
	{ .name = "ldadd", .writes = true, .leaves = 0,
	  .pages = touch_ldadd },
	{ .name = "swp", .writes = true, .leaves = TOUCH_VALUE,
	  .pages = touch_swp },
	{ .name = "cas", .writes = true, .leaves = TOUCH_VALUE,
	  .pages = touch_cas },
	{ .name = "casp", .writes = true, .leaves = TOUCH_VALUE,
	  .pages = touch_casp },
	{ .name = "ldxr", .writes = true, .leaves = TOUCH_VALUE,
	  .pages = touch_ldxr },
	{ .name = "madvise", .writes = true, .leaves = 0 },
	{ }
};

const char *touch_writing(size_t place)
{
	const struct touch *touch;

	for (touch = touches; touch->name; touch++)
		if (touch->writes && !place--)
			break;
	return touch->name;
}

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
	return touch->pages ? loop_unavailable(touch->pages) : NULL;
}
