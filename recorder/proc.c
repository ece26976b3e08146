// SPDX-License-Identifier: GPL-2.0
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "identity.h"
#include "proc.h"

pid_t *proc_threads(pid_t pid, size_t *nr)
{
	struct dirent *entry;
	pid_t *threads = NULL;
	size_t room = 0;
	char path[64];
	DIR *tasks;

	*nr = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	if (!tasks)
		return NULL;
	while ((entry = readdir(tasks))) {
		if (entry->d_name[0] == '.')
			continue;
		if (*nr == room) {
			pid_t *more;

			room = room * 2 + 64;
			more = realloc(threads, room * sizeof(*threads));
			if (!more)
				break;
			threads = more;
		}
		threads[(*nr)++] = atoi(entry->d_name);
	}
	closedir(tasks);
	return threads;
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
	if (text) {
		identity_write(pid, text, output);
		output_data(output, FT_MAPS, pid, text, strlen(text));
	}
	free(text);
}

void proc_write_names(pid_t pid, struct output *output)
{
	size_t nr;
	pid_t *threads = proc_threads(pid, &nr);

	for (size_t i = 0; i < nr; i++) {
		struct {
			struct perf_event_header header;
			uint32_t pid, tid;
			char name[16];
			/* sample_id_all: pid, tid, time. */
			uint32_t of[2];
			uint64_t time;
		} record = {
			{ .type = PERF_RECORD_COMM, .size = sizeof(record) },
			pid, threads[i], "", { pid, threads[i] }, now(),
		};
		char path[64], *text;

		snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid,
			 threads[i]);
		text = proc_read_text(path);
		if (!text)
			continue;
		memcpy(record.name, text, strnlen(text, sizeof(record.name) - 1));
		record.name[strcspn(record.name, "\n")] = '\0';
		output_write(output, &record, sizeof(record));
		free(text);
	}
	free(threads);
}
