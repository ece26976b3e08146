// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "output.h"
#include "program.h"
#include "root.h"

#define MS		1000000ull
/* In this time a signal to a process group has reached all of it. */
#define TOGETHER	(50 * MS)
/* So much later the parent may send it on, on a busy host. */
#define LATE		(1000 * MS)

static const int passed_on[PASSED_ON] = {
	SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2,
};

int program_signals(void)
{
	sigset_t set;

	/* Who started it may ignore it: nothing would tell of the program's end. */
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < PASSED_ON; i++)
		sigaddset(&set, passed_on[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* With its output on standard error, as the recorder's own may be a channel. */
static int execute_in(const char *root, char * const argv[])
{
	char * const environment[] = {
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp", "LC_ALL=C", NULL,
	};
	int error = root_enter(root);

	if (error)
		return error;
	dup2(STDERR_FILENO, STDOUT_FILENO);
	execvpe(argv[0], argv, environment);
	return errno;
}

static int execute(char * const argv[])
{
	execvp(argv[0], argv);
	return errno;
}

/* In the child: the program must not outlive a recorder that is killed. */
static void become(int go, int failed, const char *root, char * const argv[])
{
	sigset_t none;
	char byte;
	int error;

	/* The end of the file is the sign to go. */
	if (read(go, &byte, 1))
		_exit(127);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	error = root ? execute_in(root, argv) : execute(argv);
	if (write(failed, &error, sizeof(error)) != sizeof(error))
		_exit(126);
	_exit(127);
}

bool program_fork(struct program *program, const char *root,
		  char * const argv[])
{
	int go[2], failed[2];
	pid_t recorder = getpid();

	if (pipe2(go, O_CLOEXEC) || pipe2(failed, O_CLOEXEC))
		return false;
	program->pid = fork();
	if (!program->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != recorder)
			_exit(127);
		close(go[1]);
		if (program->base_pages)
			prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
		become(go[0], failed[1], root, argv);
	}
	close(go[0]);
	close(failed[1]);
	program->parent = getppid();
	program->go = go[1];
	program->failed = failed[0];
	program->pidfd = -1;
	program->status = -1;
	return program->pid > 0;
}

static void read_faults(struct program *program)
{
	char path[64];
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/%d/stat", program->pid);
	stat = fopen(path, "re");
	if (!stat)
		return;
	/* The name, in parentheses, is the recorder's own: it has no blank. */
	if (fscanf(stat, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %lu %*u %lu",
		   &program->minor_before, &program->major_before) != 2) {
		program->minor_before = 0;
		program->major_before = 0;
	}
	fclose(stat);
}

int program_exec(struct program *program)
{
	int error;

	read_faults(program);
	close(program->go);
	if (read(program->failed, &error, sizeof(error)) != sizeof(error))
		error = 0;
	close(program->failed);
	return error;
}

bool program_attach(struct program *program, pid_t pid)
{
	*program = (struct program) {
		.pid = pid,
		.attached = true,
		.status = -1,
		.pidfd = syscall(SYS_pidfd_open, pid, 0),
	};
	return program->pidfd >= 0;
}

static void reap(struct program *program)
{
	int status;

	if (!program->attached && !program->ended &&
	    waitpid(program->pid, &status, WNOHANG) == program->pid) {
		program->ended = true;
		program->status = status;
	}
}

/*
 * What the parent sends is for the program. A signal to the process group of the
 * parent comes three times: to the parent, which sends it on; to the recorder, from
 * someone else; and to the program, which needs no other.
 */
static void pass_on(struct program *program)
{
	uint64_t time = now();

	for (size_t i = 0; i < PASSED_ON; i++) {
		if (!program->sent[i] || time < program->sent[i] + TOGETHER)
			continue;
		if (!program->ended && program->seen[i] + LATE < time)
			kill(program->pid, passed_on[i]);
		program->sent[i] = 0;
	}
}

bool program_waits(const struct program *program)
{
	for (size_t i = 0; i < PASSED_ON; i++)
		if (program->sent[i])
			return true;
	return false;
}

bool program_signalled(struct program *program, int signals)
{
	struct signalfd_siginfo info;

	while (read(signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			reap(program);
			continue;
		}
		if (program->attached)
			return true;
		for (size_t i = 0; i < PASSED_ON; i++) {
			uint64_t *time = (pid_t)info.ssi_pid == program->parent ?
					 program->sent : program->seen;

			if ((int)info.ssi_signo == passed_on[i])
				time[i] = now();
		}
	}
	pass_on(program);
	return program->ended;
}

void program_used(const struct program *program, struct ft_end *end)
{
	struct rusage used;

	if (program->attached || getrusage(RUSAGE_CHILDREN, &used))
		return;
	end->resident = used.ru_maxrss;
	end->minor = used.ru_minflt - program->minor_before;
	end->major = used.ru_majflt - program->major_before;
	end->system = used.ru_stime.tv_sec * 1000 * MS + used.ru_stime.tv_usec * 1000;
}
