// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch.h"
#include "follow.h"
#include "program.h"
#include "region.h"
#include "result.h"

#define NOT_STARTED	127
#define NOT_TRACED	126
#define LONGEST_SCRIPT	4096

/* Gives the program its own root directory, to run in. 0 or -errno. */
static int enter_root(const char *root)
{
	static const struct {
		const char *source, *target, *type;
		unsigned long flags;
	} mounts[] = {
		{ "proc", "proc", "proc", 0 },
		{ "sysfs", "sys", "sysfs", 0 },
		{ "/dev", "dev", NULL, MS_BIND | MS_REC },
		{ "tmpfs", "tmp", "tmpfs", 0 },
		{ "tmpfs", "var/tmp", "tmpfs", 0 },
	};

	if (!strcmp(root, "/"))
		return 0;
	if (unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || chdir(root))
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(mounts); i++)
		if (mount(mounts[i].source, mounts[i].target, mounts[i].type,
			  mounts[i].flags, NULL))
			return -errno;
	return chroot(".") || chdir("/") ? -errno : 0;
}

/* In the child: stops until it is traced, then executes the program. */
static void become(const struct command *command)
{
	char * const environment[] = {
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp", "LC_ALL=C", NULL,
	};
	int input = STDIN_FILENO, output = STDERR_FILENO, error = 0;

	if (command->input)
		input = open(command->input, O_RDONLY | O_CLOEXEC);
	if (command->output)
		output = open(command->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (input < 0 || output < 0)
		error = -errno;
	else
		error = enter_root(command->root);
	if (!error && command->directory && chdir(command->directory))
		error = -errno;
	if (error) {
		fprintf(stderr, "ftbench: entering %s: %s\n", command->root,
			strerror(-error));
		_exit(NOT_STARTED);
	}
	dup2(input, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	if (command->fixed)
		personality(ADDR_NO_RANDOMIZE);
	/* Nobody would continue it, if it stopped for a tracer that it does not have. */
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(NOT_TRACED);
	raise(SIGSTOP);
	execvpe(command->argv[0], command->argv, environment);
	fprintf(stderr, "ftbench: %s: %s\n", command->argv[0], strerror(errno));
	_exit(NOT_STARTED);
}

/* Bytes of huge pages behind a process's anonymous memory; -1 if not known. */
static int64_t anon_huge_bytes(pid_t pid)
{
	char path[64], line[128];
	long kilobytes = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
	file = fopen(path, "re");
	if (!file)
		return -1;
	while (kilobytes < 0 && fgets(line, sizeof(line), file))
		sscanf(line, "AnonHugePages: %ld kB", &kilobytes);
	fclose(file);
	return kilobytes < 0 ? -1 : kilobytes * 1024;
}

/*
 * Runs the program to its end, and reads its smaps just before the exit.
 * Traces the first thread for this only; signals are delivered as usual.
 */
static int watch(pid_t pid, int64_t *huge)
{
	int status, signal = 0;

	for (;;) {
		ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)signal);
		if (waitpid(pid, &status, 0) != pid)
			return -1;
		if (!WIFSTOPPED(status))
			return status;
		signal = WSTOPSIG(status);
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXIT << 8))
			*huge = anon_huge_bytes(pid);
		/* An exec is reported as this signal, too. */
		if (signal == SIGTRAP)
			signal = 0;
	}
}

/* Runs the program to its end as if it had never been traced. */
static int let_go(pid_t pid)
{
	int status;

	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	return waitpid(pid, &status, 0) == pid ? status : -1;
}

static int run_to_end(const struct command *command, pid_t pid, int64_t *huge)
{
	if (command->follower)
		return follow(command->follower, pid);
	return command->look ? watch(pid, huge) : let_go(pid);
}

static void report(struct run *run, const struct command *command, int64_t huge)
{
	region_report(run);
	if (!command->look)
		return;
	if (huge < 0)
		result_absent(run, "anon_huge_bytes",
			      "the program's /proc/PID/smaps_rollup could not be read: run as root");
	else
		result_add(run, "anon_huge_bytes", huge);
}

enum status program_measure(struct run *run, const struct command *command)
{
	int64_t huge = -1;
	int status;
	pid_t pid;

	fflush(NULL);
	if (command->ended)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid = fork();
	if (!pid)
		become(command);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return wrong(run, "fork: %s", strerror(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_TRACED)
		return result_unavailable(run,
					  "ptrace(2) is forbidden here, such as by a container's seccomp profile: run it outside");
	if (!WIFSTOPPED(status))
		return refuse(run,
			      "%s does not become the root of a program: run as root, and name a directory with proc, sys, dev, tmp and var/tmp",
			      command->root);
	ptrace(PTRACE_SETOPTIONS, pid, NULL,
	       (void *)(PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL));

	region_begin_of(run, run->experiment->name, RUSAGE_CHILDREN);
	marker_begin();
	status = run_to_end(command, pid, &huge);
	while (command->ended && waitpid(-1, NULL, 0) > 0)
		;	/* what it left in the background */
	marker_end();
	region_end(run);

	/* As of a shell, it is also the status of what did not start. */
	if (!command->ended && WIFEXITED(status) && WEXITSTATUS(status) == NOT_STARTED)
		return result_unavailable(run, "%s is not there, or does not run: install it",
					  command->argv[0]);
	if (command->ended)
		*command->ended = status;
	else if (status)
		return wrong(run, "%s ended with status %#x", command->argv[0], status);
	report(run, command, huge);
	return STATUS_OK;
}

char * const *program_script(const struct run *run, const char *path)
{
	static char text[LONGEST_SCRIPT];
	static char * const argv[] = { "/bin/sh", "-c", text, NULL };
	FILE *file = fopen(path, "re");
	size_t size;

	if (!file) {
		refuse(run, "%s cannot be read (%s): name a script that exists", path,
		       strerror(errno));
		return NULL;
	}
	size = fread(text, 1, sizeof(text), file);
	fclose(file);
	if (size == sizeof(text)) {
		refuse(run, "%s is longer than %zu bytes: shorten it", path,
		       sizeof(text) - 1);
		return NULL;
	}
	text[size] = '\0';
	return argv;
}

const struct param *program_param(size_t place)
{
	static const struct param root = {
		.name = "root", .help = "the directory that the program has as its /",
		.type = PARAM_PATH, .def = "/", .option = true,
	};

	return place ? NULL : &root;
}

const struct metric *program_metric(size_t place)
{
	static const struct metric metrics[] = {
		{
			.name = "anon_huge_bytes", .unit = "bytes",
			.help = "in huge pages when the program ended; not of its children",
		},
	};

	return place < ARRAY_SIZE(metrics) ? &metrics[place] : NULL;
}
