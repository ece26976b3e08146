// SPDX-License-Identifier: GPL-2.0
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proc.h"

size_t proc_threads(pid_t pid, pid_t *threads)
{
	struct dirent *entry;
	size_t found = 0;
	char path[64];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	if (!tasks)
		return 0;
	while ((entry = readdir(tasks)) && found < MOST_THREADS)
		if (entry->d_name[0] != '.')
			threads[found++] = atoi(entry->d_name);
	closedir(tasks);
	return found;
}

char *proc_read_text(const char *path)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t room = 0;

	if (!file)
		return NULL;
	/* It has no NUL: all of it is one item. */
	if (getdelim(&text, &room, '\0', file) < 0) {
		free(text);
		text = NULL;
	}
	fclose(file);
	return text;
}

void proc_write_maps(pid_t pid, struct output *output)
{
	char path[64], *text;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	text = proc_read_text(path);
	if (text)
		output_data(output, FT_MAPS, pid, text, strlen(text));
	free(text);
}
