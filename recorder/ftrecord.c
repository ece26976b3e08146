// SPDX-License-Identifier: GPL-2.0
/*
 * Records the page faults of a command and its children, or of a process:
 *
 *   ftrecord [-bc] [-r ROOT] [-p PID -s SECONDS] -o FILE [-f SCRIPT] [--] [COMMAND...]
 *   ftrecord -x FILE
 *
 *   -b   the command gets no huge pages, and is not taken for one that forbids them
 *   -c   with the chain of calls, where the program keeps frame pointers
 *   -f   the command is what this file has, for a shell
 *   -r   the command's root directory; it gets its own /proc, /dev and /tmp, a
 *        fixed environment, and writes to standard error alone
 *   -p   a process that runs already, with all its threads
 *   -s   ends after that time
 *   -x   prints FILE in hexadecimal, for a guest's channel of text
 *
 * FILE has what format.h says; it is readable at any time, without the last
 * faults. Why there is no trace is in FILE too. The exit status is 0 if FILE has
 * all that was recorded.
 */
#include <elf.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "failure.h"
#include "proc.h"
#include "program.h"
#include "rings.h"

/* A ring that is not full in this time waits no longer. */
#define ROUND_MS	100
/* The same while a signal waits to be passed on. */
#define SIGNAL_MS	10

#ifdef __aarch64__
#define MACHINE		EM_AARCH64
#else
#define MACHINE		EM_X86_64
#endif

struct recording {
	struct output output;
	struct rings rings;
	struct code code;
	struct program program;
	/* CLOCK_MONOTONIC, ns; 0 for no end. */
	uint64_t until;
};

/* Writes why there is no trace, and ends. */
__attribute__((format(printf, 2, 3), noreturn))
static void give_up(struct recording *recording, const char *format, ...)
{
	char sentence[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	output_data(&recording->output, FT_ERROR, 0, sentence, strlen(sentence));
	output_flush(&recording->output);
	if (!recording->program.attached && recording->program.pid > 0)
		kill(recording->program.pid, SIGKILL);
	exit(2);
}

static void open_rings(struct recording *recording)
{
	bool attached = recording->program.attached;
	pid_t *threads = &recording->program.pid;
	size_t nr_threads = 1;
	char sentence[512];
	int error;

	if (attached)
		threads = proc_threads(recording->program.pid, &nr_threads);
	/* Faults taken in the kernel are for those who may see them. */
	recording->rings.flags |= FT_MAPPED | FT_KERNEL;
	error = rings_open(&recording->rings, threads, nr_threads, !attached);
	/* Linux before 5.11 refuses what it does not have. */
	if (error == -EINVAL) {
		recording->rings.flags &= ~FT_MAPPED;
		error = rings_open(&recording->rings, threads, nr_threads,
				   !attached);
	}
	if (error == -EACCES || error == -EPERM) {
		recording->rings.flags &= ~FT_KERNEL;
		error = rings_open(&recording->rings, threads, nr_threads,
				   !attached);
	}
	if (attached)
		free(threads);
	if (error) {
		failure_explain(-error, attached ? recording->program.pid : 0,
				sentence, sizeof(sentence));
		give_up(recording, "%s", sentence);
	}
}

static void write_start(struct recording *recording)
{
	output_write(&recording->output, &(struct ft_start) {
		.header = ft_header(FT_START, sizeof(struct ft_start)),
		.flags = recording->rings.flags |
			 (recording->program.attached ? FT_ATTACHED : 0),
		.machine = MACHINE,
		.page_size = sysconf(_SC_PAGESIZE),
		.pid = recording->program.pid,
		.time = now(),
		.ring = recording->rings.size,
	}, sizeof(struct ft_start));
}

static void write_names(struct recording *recording, char * const argv[])
{
	struct utsname host;
	char *text;
	size_t size;
	FILE *names = open_memstream(&text, &size);

	if (!names || uname(&host))
		return;
	fwrite(host.release, strlen(host.release) + 1, 1, names);
	for (; *argv; argv++)
		fwrite(*argv, strlen(*argv) + 1, 1, names);
	fclose(names);
	output_data(&recording->output, FT_NAMES, recording->program.pid, text,
		    size);
	free(text);
}

static int left_ms(const struct recording *recording)
{
	uint64_t time = now();

	if (program_waits(&recording->program))
		return SIGNAL_MS;
	if (!recording->until)
		return ROUND_MS;
	if (time >= recording->until)
		return 0;
	time = (recording->until - time) / 1000000 + 1;
	return time < ROUND_MS ? time : ROUND_MS;
}

static void record(struct recording *recording, int signals)
{
	size_t nr_rings = recording->rings.nr_rings;
	struct pollfd *ready = calloc(nr_rings + 2, sizeof(*ready));
	uint64_t flushed = 0;
	bool done = false;

	if (!ready)
		give_up(recording, "there is no memory: end other programs.");
	for (size_t i = 0; i < nr_rings; i++)
		ready[i] = (struct pollfd) { recording->rings.ring[i].fd, POLLIN, 0 };
	ready[nr_rings] = (struct pollfd) { signals, POLLIN, 0 };
	ready[nr_rings + 1] = (struct pollfd) { recording->program.pidfd, POLLIN, 0 };
	while (!done) {
		poll(ready, nr_rings + 2, left_ms(recording));
		/* A ring whose threads have all ended stays ready. */
		for (size_t i = 0; i < nr_rings; i++)
			if (ready[i].revents & POLLHUP)
				ready[i].fd = -1;
		rings_drain(&recording->rings, &recording->code,
			    &recording->output);
		if (now() - flushed > ROUND_MS * 1000000ull) {
			output_flush(&recording->output);
			flushed = now();
		}
		done = program_signalled(&recording->program, signals) ||
		       ready[nr_rings + 1].revents ||
		       (recording->until && now() >= recording->until);
	}
	free(ready);
}

static void write_end(struct recording *recording)
{
	struct ft_end end = {
		.header = ft_header(FT_END, sizeof(end)),
		.status = recording->program.status,
		.time = now(),
	};

	rings_disable(&recording->rings);
	rings_drain(&recording->rings, &recording->code, &recording->output);
	end.faults = rings_count(&recording->rings);
	end.samples = recording->rings.samples;
	program_used(&recording->program, &end);
	output_write(&recording->output, &end, sizeof(end));
	output_flush(&recording->output);
}

static void start(struct recording *recording, int pid, const char *root,
		  char * const argv[])
{
	struct program *program = &recording->program;
	int error;

	recording->rings.ignore_thp = program->base_pages;
	if (pid && !program_attach(program, pid))
		give_up(recording, errno == EPERM || errno == ENOSYS ?
			"process %d cannot be waited for here, as pidfd_open(2) is forbidden or "
			"missing: trace its command from the start." :
			"there is no process %d: give one that runs.", pid);
	if (!pid && !program_fork(program, root, argv))
		give_up(recording, "no process can be started (%s): end other programs.",
			strerror(errno));
	open_rings(recording);
	write_start(recording);
	write_names(recording, argv);
	if (pid) {
		proc_write_maps(pid, &recording->output);
		proc_write_names(pid, &recording->output);
		return;
	}
	error = program_exec(program);
	if (error == ENOENT && !root && strchr(argv[0], '/') && !access(argv[0], F_OK))
		give_up(recording, "the interpreter that %s names is missing: correct its "
			"first line, or install it.", argv[0]);
	if (error)
		give_up(recording, "%s cannot be run (%s): give a program on PATH, or its path.",
			argv[0], strerror(error));
}

int main(int argc, char *argv[])
{
	struct recording recording = { 0 };
	char *script[4] = { "/bin/sh", "-c" }, **command;
	const char *file = NULL, *root = NULL;
	double seconds = 0;
	int option, signals, pid = 0;

	while ((option = getopt(argc, argv, "+bcf:o:p:r:s:x:")) != -1) {
		if (option == 'b')
			recording.program.base_pages = true;
		else if (option == 'c')
			recording.rings.flags |= FT_CALL_CHAINS;
		else if (option == 'f')
			script[2] = proc_read_text(optarg);
		else if (option == 'o')
			file = optarg;
		else if (option == 'p')
			pid = atoi(optarg);
		else if (option == 'r')
			root = optarg;
		else if (option == 's')
			seconds = atof(optarg);
		else if (option == 'x')
			return output_print(optarg) ? 0 : 2;
		else
			return 2;
	}
	command = script[2] ? script : argv + optind;
	if (!file || !*command != !!pid) {
		fputs("usage: ftrecord [-bc] [-r ROOT] [-p PID] [-s SECONDS] -o FILE "
		      "[-f SCRIPT] [--] [COMMAND...]\n", stderr);
		return 2;
	}
	/* Who started it asks for no trace any more: end the program, too. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (!output_open(&recording.output, file) || !code_open(&recording.code)) {
		fprintf(stderr, "ftrecord: %s: %s\n", file, strerror(errno));
		return 2;
	}
	signals = program_signals();
	if (signals < 0)
		give_up(&recording, "signalfd(2) failed (%s): allow more open files, by `ulimit "
			"-n`, or trace outside of a container.", strerror(errno));
	start(&recording, pid, root, command);
	if (seconds > 0)
		recording.until = now() + (uint64_t)(seconds * 1e9);
	record(&recording, signals);
	write_end(&recording);
	if (recording.output.error) {
		fprintf(stderr, "ftrecord: %s: %s\n", file,
			strerror(recording.output.error));
		return 1;
	}
	return 0;
}
