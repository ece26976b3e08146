// SPDX-License-Identifier: GPL-2.0
#include <ftw.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cgroups.h"

/* Directories that a walk keeps open. */
#define OPEN	16

/* nftw(3) passes nothing to its function. */
static FILE *names;
static size_t mount_len;

static int add_name(const char *path, const struct stat *status, int type,
		    struct FTW *place)
{
	(void)place;
	/* A number is that of the directory's inode. */
	if (type == FTW_D)
		fprintf(names, "%ju /%s\n", (uintmax_t)status->st_ino,
			path + mount_len + strspn(path + mount_len, "/"));
	return 0;
}

/* Whether perf's cgroups are in a file system: of version 2, or of 1 with its controller. */
static bool has_perf(const struct mntent *mount)
{
	return !strcmp(mount->mnt_type, "cgroup2") ||
	       (!strcmp(mount->mnt_type, "cgroup") &&
		hasmntopt(mount, "perf_event"));
}

void cgroups_write(struct output *output)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent *mount;
	char *text;
	size_t size;

	names = open_memstream(&text, &size);
	while (mounts && names && (mount = getmntent(mounts))) {
		if (!has_perf(mount))
			continue;
		mount_len = strlen(mount->mnt_dir);
		nftw(mount->mnt_dir, add_name, OPEN, FTW_MOUNT | FTW_PHYS);
	}
	if (mounts)
		endmntent(mounts);
	if (!names)
		return;
	fclose(names);
	output_data(output, FT_CGROUP_NAMES, 0, text, size);
	free(text);
}
