// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <linux/kcmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "follow.h"

#define FOLLOW	(PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | \
		 PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL)

struct task {
	pid_t id;
	bool started;	/* its first SIGSTOP, which is ptrace(2)'s, has come */
	bool ends;
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
			follower->why =
				"kcmp(2) fails: build the kernel with CONFIG_KCMP, run as root";
	}
	return true;
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
		if (follower->leaves && is_last(follower, task))
			follower->leaves(follower, id);
		return 0;
	}
	if (!task->started && WSTOPSIG(status) == SIGSTOP) {
		task->started = true;
		return 0;
	}
	return WSTOPSIG(status);
}

static bool has_ended(const siginfo_t *info)
{
	return info->si_code == CLD_EXITED || info->si_code == CLD_KILLED ||
		info->si_code == CLD_DUMPED;
}

int follow(struct follower *follower, pid_t child)
{
	int status, ended = -1;
	siginfo_t info;

	find_task(follower, child)->started = true;
	ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)FOLLOW);
	ptrace(PTRACE_CONT, child, NULL, NULL);
	/* Left waitable: an ended task is in /proc until waitpid(2) takes it. */
	while (!waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOWAIT | __WALL)) {
		const pid_t id = info.si_pid;

		if (has_ended(&info) && follower->ended)
			follower->ended(follower, id);
		if (waitpid(id, &status, __WALL) != id)
			break;
		if (WIFSTOPPED(status)) {
			const intptr_t signal = handle(follower, id, status);

			ptrace(PTRACE_CONT, id, NULL, (void *)signal);
			continue;
		}
		if (id == child)
			ended = status;
		if (!find_task(follower, id)->ends)
			follower->why = "a process ended without a stop for ptrace(2)";
		forget_task(follower, id);
	}
	free(follower->tasks);
	return ended;
}
