// SPDX-License-Identifier: GPL-2.0
/* /sys/kernel/mm/zero_page: how many zero pages there are, and why. */
#include <linux/init.h>
#include <linux/kobject.h>
#include <linux/mm.h>
#include <linux/sysfs.h>

#include "color_zero_page.h"

static ssize_t colors_show(struct kobject *kobj, struct kobj_attribute *attr,
			   char *buf)
{
	return sysfs_emit(buf, "%lu\n", arm64_zero_pages.color_mask + 1);
}

static ssize_t reserved_show(struct kobject *kobj, struct kobj_attribute *attr,
			     char *buf)
{
	return sysfs_emit(buf, "%lu\n", ZERO_PAGES_MAX);
}

static ssize_t way_size_show(struct kobject *kobj, struct kobj_attribute *attr,
			     char *buf)
{
	return sysfs_emit(buf, "%u\n", zero_page_choice.way_size);
}

static ssize_t source_show(struct kobject *kobj, struct kobj_attribute *attr,
			   char *buf)
{
	return sysfs_emit(buf, "%s\n", zero_page_choice.from);
}

static ssize_t parameter_show(struct kobject *kobj, struct kobj_attribute *attr,
			      char *buf)
{
	char text[ZERO_PAGE_REQUEST_LEN];

	zero_page_request_text(&zero_page_request, text);
	return sysfs_emit(buf, "%s\n", text);
}

static struct kobj_attribute colors_attr = __ATTR_RO(colors);
static struct kobj_attribute reserved_attr = __ATTR_RO(reserved);
static struct kobj_attribute way_size_attr = __ATTR_RO(way_size);
static struct kobj_attribute source_attr = __ATTR_RO(source);
static struct kobj_attribute parameter_attr = __ATTR_RO(parameter);

static struct attribute *zero_page_attrs[] = {
	&colors_attr.attr,
	&reserved_attr.attr,
	&way_size_attr.attr,
	&source_attr.attr,
	&parameter_attr.attr,
	NULL,
};

static const struct attribute_group zero_page_group = {
	.name = "zero_page",
	.attrs = zero_page_attrs,
};

static int __init zero_page_sysfs_init(void)
{
	return sysfs_create_group(mm_kobj, &zero_page_group);
}
subsys_initcall(zero_page_sysfs_init);
