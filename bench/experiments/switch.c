// SPDX-License-Identifier: GPL-2.0
/*
 * A system call, a pipe, and switches between threads and between processes by
 * way of pipes. No memory is mapped: what a change of mm costs here, it costs all.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cpus.h"
#include "operation.h"

#define WARM_ROUNDS	16	/* until the other side has faulted all in */

/* Two pipes, and the side that sends back what comes. */
struct other_side {
	int there[2], back[2];
	pthread_t thread;
	bool has_thread;
};

static bool pass_byte(int from, int to)
{
	char byte;

	return read(from, &byte, 1) == 1 && write(to, &byte, 1) == 1;
}

/* One byte goes into the first pipe and comes out of the second. */
static bool send_round(const struct other_side *other)
{
	char byte = 1;

	return write(other->there[1], &byte, 1) == 1 &&
	       read(other->back[0], &byte, 1) == 1;
}

static void *send_back(void *arg)
{
	const struct other_side *other = arg;

	while (pass_byte(other->there[0], other->back[1]))
		;
	return NULL;
}

/* Both sides share a CPU: each round is two switches, wherever it runs. */
static const char *make_pipes(struct area *area)
{
	struct other_side *other = calloc(1, sizeof(*other));

	if (!other)
		return "no memory for the pipes: free some";
	area->state = other;
	other->there[0] = -1;
	other->back[0] = -1;
	cpus_pin(0);
	return pipe(other->there) || pipe(other->back) ?
	       "no pipes: raise ulimit -n" : NULL;
}

static const char *meet(const struct other_side *other)
{
	for (int i = 0; i < WARM_ROUNDS; i++)
		if (!send_round(other))
			return "the other side does not answer";
	return NULL;
}

static const char *start_thread(struct area *area)
{
	const char *why = make_pipes(area);
	struct other_side *other = area->state;

	if (why)
		return why;
	if (pthread_create(&other->thread, NULL, send_back, other))
		return "no thread can be started: allow more processes";
	other->has_thread = true;
	return meet(other);
}

static const char *start_process(struct area *area)
{
	const char *why = make_pipes(area);
	struct other_side *other = area->state;

	if (why)
		return why;
	/*
	 * It shares the open files, as a thread does: the kernel counts those who
	 * use a file that is not one process's alone. So only memory differs.
	 */
	area->child = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
	if (!area->child) {
		send_back(other);
		_exit(0);
	}
	return area->child < 0 ? "fork failed: allow more processes" :
				 meet(other);
}

static int64_t call(struct area *area)
{
	const int64_t rounds = param_number(area->run, "rounds");

	for (int64_t i = 0; i < rounds; i++)
		syscall(SYS_getppid);
	return rounds;
}

static int64_t pipe_alone(struct area *area)
{
	const int64_t rounds = param_number(area->run, "rounds");
	const struct other_side *other = area->state;
	char byte = 1;

	for (int64_t i = 0; i < rounds; i++)
		if (write(other->there[1], &byte, 1) != 1 ||
		    !pass_byte(other->there[0], other->back[1]) ||
		    read(other->back[0], &byte, 1) != 1)
			return -errno;
	return rounds;
}

static int64_t round_trips(struct area *area)
{
	const int64_t rounds = param_number(area->run, "rounds");

	for (int64_t i = 0; i < rounds; i++)
		if (!send_round(area->state))
			return -EPIPE;
	return rounds;
}

static void close_pipe(const int ends[2])
{
	if (ends[0] < 0)
		return;
	close(ends[0]);
	close(ends[1]);
}

static void end_other_side(struct area *area)
{
	struct other_side *other = area->state;

	if (!other)
		return;
	/* It reads until nobody can write any more. */
	close(other->there[1]);
	other->there[1] = -1;
	if (other->has_thread)
		pthread_join(other->thread, NULL);
	close_pipe(other->there);
	close_pipe(other->back);
	free(other);
}

static const struct operation operations[] = {
	{ "call", NULL, call },
	{ "pipe", make_pipes, pipe_alone },
	{ "thread", start_thread, round_trips },
	{ "process", start_process, round_trips },
	{ }
};

static const char *operation_name(size_t place)
{
	return operations[place].name;
}

static enum status measure(struct run *run)
{
	return operation_measure(run, operations, end_other_side);
}

static const struct param params[] = {
	OPERATION_PARAM("process"),
	{
		.name = "rounds", .help = "calls or round trips",
		.type = PARAM_COUNT, .def = "1000", .min = 1, .max = 1000000000,
	},
	{ }
};

static const struct metric metrics[] = {
	OPERATIONS_METRIC,
	{ }
};

static const struct experiment switch_experiment = {
	.name = "switch",
	.summary = "system calls, pipes, and switches of threads and processes",
	.detail =
"call: getppid. pipe: a byte goes through two pipes of the process itself, with four\n"
"calls. thread: the same four calls, but another thread reads the first pipe and writes\n"
"the second, so that there are two switches without a change of memory. process: the\n"
"same with a child, so that each switch changes the memory, too. All on one CPU.",
	.example = "--operation process --rounds 1000",
	.params = params,
	.metrics = metrics,
	.measure = measure,
};

EXPERIMENT(switch_experiment);
