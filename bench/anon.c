// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "anon.h"
#include "memory.h"

/* Documentation/admin-guide/mm/pagemap.rst; the second is also set in shmem. */
#define PRESENT		0x8000000000000000ull
#define OF_FILE		0x2000000000000000ull
#define ENTRIES		512	/* read at once */

#define FOLLOW	(PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | \
		 PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL)

struct task {
	pid_t id;
	bool started;	/* its first SIGSTOP, which is ptrace(2)'s, has come */
	bool ends;
};

struct follower {
	struct task *tasks;
	size_t nr, room;
	struct anon *anon;
	void *page;	/* room for one */
};

/* The files of one task. */
struct view {
	int pagemap, mem;
	FILE *smaps;
};

static struct task *find_task(struct follower *follower, pid_t id)
{
	struct task *task = follower->tasks;

	for (size_t i = 0; i < follower->nr; i++, task++)
		if (task->id == id)
			return task;
	if (follower->nr == follower->room) {
		follower->room = 2 * follower->room + 16;
		follower->tasks = reallocarray(follower->tasks, follower->room,
					       sizeof(*task));
		if (!follower->tasks)
			abort();
	}
	task = &follower->tasks[follower->nr++];
	*task = (struct task){ .id = id };
	return task;
}

static void forget_task(struct follower *follower, pid_t id)
{
	*find_task(follower, id) = follower->tasks[follower->nr - 1];
	follower->nr--;
}

/* Whether no other task, such as a thread or a vfork(2) child, has this one's memory. */
static bool is_last(struct follower *follower, const struct task *task)
{
	for (size_t i = 0; i < follower->nr; i++) {
		const struct task *other = &follower->tasks[i];
		long order;

		if (other->ends || other->id == task->id)
			continue;
		order = syscall(SYS_kcmp, task->id, other->id, KCMP_VM, 0, 0);
		if (!order)
			return false;
		if (order < 0 && errno != ESRCH)
			follower->anon->why =
				"kcmp(2) fails: build the kernel with CONFIG_KCMP, run as root";
	}
	return true;
}

static bool is_zero(const char *bytes, size_t size)
{
	return !bytes[0] && !memcmp(bytes, bytes + 1, size - 1);
}

/*
 * Counts [start, end) of a task, which has @anonymous resident pages there, as
 * smaps says. Zero pages are neither these nor of a file: subtracting them needs
 * no permission to see page frames, and no knowledge of how many there are.
 */
static bool count(struct follower *follower, const struct view *view,
		  uintptr_t start, uintptr_t end, uint64_t anonymous)
{
	const size_t size = page_size();
	uint64_t entries[ENTRIES], mapped = 0, zero = 0;
	size_t nr;

	for (; start < end; start += nr * size) {
		nr = (end - start) / size < ENTRIES ? (end - start) / size : ENTRIES;
		if (pread(view->pagemap, entries, nr * sizeof(*entries),
			  start / size * sizeof(*entries)) !=
		    (ssize_t)(nr * sizeof(*entries)))
			return false;
		for (size_t i = 0; i < nr; i++) {
			if ((entries[i] & (PRESENT | OF_FILE)) != PRESENT)
				continue;
			if (pread(view->mem, follower->page, size,
				  start + i * size) != (ssize_t)size)
				return false;
			mapped++;
			zero += is_zero(follower->page, size);
		}
	}
	if (mapped < anonymous || zero < mapped - anonymous)
		return false;
	follower->anon->pages += anonymous;
	follower->anon->zero_pages += zero - (mapped - anonymous);
	return true;
}

static bool count_all(struct follower *follower, const struct view *view)
{
	uintptr_t start = 0, end = 0, first;
	uint64_t kilobytes;
	char line[4352];

	if (view->pagemap < 0 || view->mem < 0 || !view->smaps)
		return false;
	while (fgets(line, sizeof(line), view->smaps)) {
		/* Some fields begin with a hexadecimal digit, such as this one. */
		if (sscanf(line, "%lx-%lx ", &first, &end) == 2)
			start = first;
		if (sscanf(line, "Anonymous: %lu kB", &kilobytes) != 1 || !kilobytes)
			continue;
		if (!count(follower, view, start, end,
			   kilobytes * 1024 / page_size()))
			return false;
	}
	return true;
}

static int open_file(pid_t id, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", id, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* @id is of a thread that has its memory still: the first one may have ended. */
static void look(struct follower *follower, pid_t id)
{
	const int smaps = open_file(id, "smaps");
	struct view view = {
		.pagemap = open_file(id, "pagemap"), .mem = open_file(id, "mem"),
		.smaps = smaps < 0 ? NULL : fdopen(smaps, "r"),
	};

	if (!count_all(follower, &view))
		follower->anon->why =
			"smaps, pagemap and mem of /proc/PID disagree (CONFIG_PROC_PAGE_MONITOR)";
	if (view.smaps)
		fclose(view.smaps);
	if (view.pagemap >= 0)
		close(view.pagemap);
	if (view.mem >= 0)
		close(view.mem);
}

/* Returns the signal that the task is to get. */
static int handle(struct follower *follower, pid_t id, int status)
{
	struct task *task = find_task(follower, id);
	unsigned long message = 0;

	ptrace(PTRACE_GETEVENTMSG, id, NULL, &message);
	switch (status >> 16) {
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		find_task(follower, message);
		return 0;
	case PTRACE_EVENT_EXEC:
		/* A thread that executes goes on with the id of the first one. */
		task->ends = false;
		if ((pid_t)message != id)
			forget_task(follower, message);
		return 0;
	case PTRACE_EVENT_EXIT:
		task->ends = true;
		if (is_last(follower, task))
			look(follower, id);
		return 0;
	}
	if (!task->started && WSTOPSIG(status) == SIGSTOP) {
		task->started = true;
		return 0;
	}
	return WSTOPSIG(status);
}

int anon_follow(pid_t child, struct anon *anon)
{
	struct follower follower = { .anon = anon, .page = malloc(page_size()) };
	int status, ended = -1;
	pid_t id;

	if (!follower.page)
		abort();
	*anon = (struct anon){ };
	find_task(&follower, child)->started = true;
	ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)FOLLOW);
	ptrace(PTRACE_CONT, child, NULL, NULL);
	while ((id = waitpid(-1, &status, __WALL)) > 0) {
		if (WIFSTOPPED(status)) {
			const intptr_t signal = handle(&follower, id, status);

			ptrace(PTRACE_CONT, id, NULL, (void *)signal);
			continue;
		}
		if (id == child)
			ended = status;
		if (!find_task(&follower, id)->ends)
			anon->why = "a process ended without a stop for ptrace(2)";
		forget_task(&follower, id);
	}
	free(follower.tasks);
	free(follower.page);
	return ended;
}
