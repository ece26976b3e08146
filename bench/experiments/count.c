// SPDX-License-Identifier: GPL-2.0
/* A program of the user's: `firsttouch count`. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "follow.h"
#include "program.h"
#include "result.h"

/* The laboratory's guests have these. */
#define WORDS		"/scripts"
#define INPUT		"/input"
#define OUTPUT		"/output"
#define MAX_WORDS	1024

/* The program's arguments, from a file in which a NUL ends each. 0 or -errno. */
static int read_words(const char *path, char *argv[MAX_WORDS + 1])
{
	FILE *file = fopen(path, "re");
	size_t count = 0, room = 0;

	if (!file)
		return -errno;
	while (count < MAX_WORDS && getdelim(&argv[count], &room, '\0', file) > 0) {
		count++;
		room = 0;
		argv[count] = NULL;
	}
	fclose(file);
	argv[count] = NULL;
	return count ? 0 : -ENODATA;
}

/*
 * Passes what the program printed on to standard error, and adds its size and its
 * digest: 48 bits of FNV-1a, which a JSON number holds.
 */
static int report_output(struct run *run)
{
	uint64_t digest = 0xcbf29ce484222325, size = 0;
	FILE *file = fopen(OUTPUT, "re");
	unsigned char block[4096];
	size_t got;

	if (!file)
		return -errno;
	while ((got = fread(block, 1, sizeof(block), file))) {
		for (size_t i = 0; i < got; i++)
			digest = (digest ^ block[i]) * 0x100000001b3;
		size += got;
		/* It has no buffer: a byte would be a system call. */
		fwrite(block, 1, got, stderr);
	}
	fclose(file);
	unlink(OUTPUT);
	result_add(run, "output_bytes", size);
	result_add(run, "output_digest", digest >> 16);
	return 0;
}

/* A line for each task that ended: its ID, nanoseconds on a CPU, its last name. */
struct processes {
	struct follower follower;	/* first */
	FILE *lines;
};

static void process_ended(struct follower *follower, pid_t id)
{
	struct processes *processes = (struct processes *)follower;
	char path[64], name[64] = "";
	unsigned long long runtime;
	FILE *file;
	int found = 0;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", id);
	file = fopen(path, "re");
	if (file) {
		found = fscanf(file, "%llu", &runtime);
		fclose(file);
	}
	snprintf(path, sizeof(path), "/proc/%d/comm", id);
	file = fopen(path, "re");
	if (file) {
		found += fscanf(file, "%63[^\n]", name);
		fclose(file);
	}
	if (found == 2)
		fprintf(processes->lines, "%d %llu %s\n", id, runtime, name);
	else
		follower->why = "/proc/PID/schedstat is missing (CONFIG_SCHEDSTATS)";
}

static enum status measure(struct run *run)
{
	char *argv[MAX_WORDS + 1] = { NULL };
	struct processes processes = { .follower.ended = process_ended };
	const bool apart = !strcmp(param_text(run, "processes"), "yes");
	char *lines = NULL;
	size_t size;
	struct rusage usage;
	char path[4352];
	enum status status;
	int ended, error;

	snprintf(path, sizeof(path), WORDS "/%s", param_text(run, "program"));
	error = read_words(path, argv);
	if (error)
		return refuse(run, "%s cannot be read (%s): run `firsttouch count`", path,
			      strerror(-error));
	processes.lines = open_memstream(&lines, &size);
	if (!processes.lines)
		return wrong(run, "open_memstream: %s", strerror(errno));
	status = program_measure(run, &(struct command) {
		.root = param_text(run, "root"), .directory = "/work", .argv = argv,
		.fixed = true, .output = OUTPUT, .ended = &ended,
		.input = access(INPUT, R_OK) ? NULL : INPUT,
		.follower = apart ? &processes.follower : NULL,
	});
	fclose(processes.lines);
	if (status == STATUS_OK && apart)
		result_note(run, "processes",
			    processes.follower.why ? processes.follower.why : lines);
	free(lines);
	if (status != STATUS_OK)
		return status;
	error = report_output(run);
	if (error)
		return wrong(run, OUTPUT ": %s", strerror(-error));
	result_add(run, "exit_status",
		   WIFSIGNALED(ended) ? 128 + WTERMSIG(ended) : WEXITSTATUS(ended));
	getrusage(RUSAGE_CHILDREN, &usage);
	result_add(run, "peak_resident_bytes", usage.ru_maxrss * INT64_C(1024));
	return STATUS_OK;
}

static const char * const no_or_yes[] = { "no", "yes", NULL };

static const struct param params[] = {
	{
		.name = "program", .help = "the command of this name in " WORDS,
		.type = PARAM_PATH, .def = "true",
	}, {
		.name = "cpus", .help = "CPUs of the guest",
		.type = PARAM_COUNT, .def = "1", .min = 1, .max = 8,
	}, {
		.name = "processes",
		.help = "trace them, and print the nanoseconds that each ran",
		.type = PARAM_CHOICE, .words = no_or_yes, .def = "no",
	},
	{ }
};

static const struct metric metrics[] = {
	{ "exit_status", "status", "of the command; 128 and the signal that ended it" },
	{ "output_bytes", "bytes", "printed on standard output and standard error" },
	{ "output_digest", "digest", "of these bytes" },
	{ "peak_resident_bytes", "bytes", "of the process that had most memory at once" },
	{ }
};

static const struct experiment count = {
	.name = "count",
	.summary = "a program of the user's, from its start to its end",
	.detail =
"Runs the command whose words are in " WORDS ", which a guest of `firsttouch count`\n"
"has, without random addresses and in /work of its root, and counts it and its\n"
"children. What it prints goes to standard error when it has ended. --processes yes\n"
"adds a line for each process and thread: its ID, how long it ran, and its name.\n"
"Counts of traced processes include the tracer's: do not compare them.",
	.example = "--program true",
	.params = params,
	.metrics = metrics,
	.shared_params = program_param,
	.measure = measure,
};

EXPERIMENT(count);
