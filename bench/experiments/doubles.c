// SPDX-License-Identifier: GPL-2.0
/*
 * The page faults of a program, recorded one by one. What they show, such as
 * the pages that were read first and then written, is found afterwards. Then
 * the program runs once more, without the recorder, and is counted.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch.h"
#include "program.h"
#include "result.h"

/* The laboratory's guests have these. */
#define RECORDER	"/ftrecord"
#define SCRIPTS		"/scripts"
#define RECORDING	"/tmp/recording"

/* Writes a line of its own: the recording in hexadecimal. */
static int print_recording(void)
{
	FILE *file = fopen(RECORDING, "re");
	int byte;

	if (!file)
		return -errno;
	printf("{\"recording\": \"");
	while ((byte = getc(file)) != EOF)
		printf("%02x", byte);
	printf("\"}\n");
	fclose(file);
	unlink(RECORDING);
	return 0;
}

static enum status record(struct run *run, const char *script)
{
	int status, error;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		/* The recording alone goes to standard output. */
		dup2(STDERR_FILENO, STDOUT_FILENO);
		execl(RECORDER, RECORDER, "-r", param_text(run, "root"), "-o",
		      RECORDING, "-f", script, NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return wrong(run, "fork: %s", strerror(errno));
	if (status)
		return wrong(run, "the recorder of %s ended with status %#x",
			     script, status);
	error = print_recording();
	if (error)
		return wrong(run, RECORDING ": %s", strerror(-error));
	return STATUS_OK;
}

static enum status measure(struct run *run)
{
	char path[256];
	char * const *argv;
	enum status status;

	snprintf(path, sizeof(path), SCRIPTS "/%s", param_text(run, "program"));
	if (access(RECORDER, X_OK) || access(path, R_OK))
		return refuse(run,
			      "there is no %s, or no %s: only the laboratory's guests have them; run `firsttouch trace` here",
			      RECORDER, path);
	argv = program_script(run, path);
	if (!argv)
		return STATUS_USAGE;
	status = record(run, path);
	if (status)
		return status;
	return program_measure(run, &(struct command) {
		.root = param_text(run, "root"), .directory = "/tmp", .argv = argv,
		.fixed = true,
	});
}

static const struct param params[] = {
	{
		.name = "program", .help = "the script of this name in " SCRIPTS,
		.type = PARAM_PATH, .def = "perl-hash",
	},
	{ }
};

static const struct metric metrics[] = {
	{ }
};

static const struct experiment doubles = {
	.name = "doubles",
	.summary = "the page faults of a program, recorded one by one",
	.detail =
"Runs a script under the recorder of `firsttouch trace`, which a guest of the\n"
"laboratory has, and prints what was recorded as a line of its own. Then runs it\n"
"again without the recorder and without random addresses, and counts its faults and\n"
"those of its children.",
	.example = "--program perl-hash",
	.params = params,
	.metrics = metrics,
	.shared_params = program_param,
	.measure = measure,
};

EXPERIMENT(doubles);
