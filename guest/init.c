// SPDX-License-Identifier: GPL-2.0
/*
 * The guest's first and only service: runs the commands of a cell, one after
 * the other, and switches the machine off.
 *
 * A command's standard output goes to the results channel, a virtio serial
 * port. Its standard error and init's own messages go to the console, beside
 * the kernel's log. After each command, a line on the results channel gives its
 * exit status. After the last command, a line says that there are no more; if
 * it is missing, the guest died. The line after a command begins with a line
 * break, because the command's output may have ended without one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The port appears shortly after boot: a message tells the driver of it. */
#define PORT_TRIES	1000
#define PORT_WAIT_NS	5000000L

#define CGROUPS		"/sys/fs/cgroup"
#define SLICE		"/system.slice"
#define SERVICE		"/cell.service"
/* In the kernel's command line; the kernel ignores words with a dot. */
#define DEPTH		"init.cgroup_depth="
#define MAX_DEPTH	9

/* The memory cgroup of commands */
static char service[sizeof(CGROUPS) + MAX_DEPTH * sizeof(SLICE)] = CGROUPS;

static const struct {
	const char *type, *target, *options;
} mounts[] = {
	/* If the mount is missing, the open fails without a message. */
	{ "proc", "/proc", NULL },
	{ "sysfs", "/sys", NULL },
	{ "devtmpfs", "/dev", NULL },
	{ "tmpfs", "/dev/shm", NULL },
	{ "tmpfs", "/tmp", NULL },
	{ "debugfs", "/sys/kernel/debug", NULL },
	{ "tracefs", "/sys/kernel/tracing", NULL },
	{ "hugetlbfs", "/hugepages", NULL },
	{ "cgroup2", "/sys/fs/cgroup", NULL },
};

static void power_off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	_exit(1);
}

static void die(const char *what)
{
	fprintf(stderr, "init: %s: %s\n", what, strerror(errno));
	power_off();
}

static void mount_all(void)
{
	size_t i;

	for (i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		mkdir(mounts[i].target, 0755);
		/* The guest must boot without hugetlbfs, too. */
		if (mount(mounts[i].type, mounts[i].target, mounts[i].type, 0,
			  mounts[i].options) && errno != EBUSY && errno != ENODEV &&
		    errno != ENOENT)
			die(mounts[i].target);
	}
}

static int put(const char *path, const char *text)
{
	ssize_t size = strlen(text), done;
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	done = write(fd, text, size);
	close(fd);
	return done == size ? 0 : -1;
}

static int cgroup_depth(void)
{
	char line[4096] = "", *word;
	int fd = open("/proc/cmdline", O_RDONLY | O_CLOEXEC), depth;

	if (fd < 0 || read(fd, line, sizeof(line) - 1) < 0)
		die("/proc/cmdline");
	close(fd);
	word = strstr(line, DEPTH);
	depth = word ? atoi(word + strlen(DEPTH)) : 2;
	return depth < 1 ? 1 : depth > MAX_DEPTH ? MAX_DEPTH : depth;
}

/*
 * Makes a memory cgroup, by default two levels deep, as systemd does for a service.
 * Pages of processes in the root cgroup are not charged, so a fault there costs less.
 */
static void make_cgroup(void)
{
	int depth = cgroup_depth();
	char control[sizeof(service) + sizeof("/cgroup.subtree_control")];

	while (depth--) {
		snprintf(control, sizeof(control), "%s/cgroup.subtree_control", service);
		if (put(control, "+memory")) {
			fprintf(stderr, "init: this kernel has no memory cgroups\n");
			return;
		}
		strcat(service, depth ? SLICE : SERVICE);
		if (mkdir(service, 0755))
			die(service);
	}
	fprintf(stderr, "init: commands run in %s\n", service);
}

static void enter_cgroup(void)
{
	char procs[sizeof(service) + sizeof("/cgroup.procs")];

	snprintf(procs, sizeof(procs), "%s/cgroup.procs", service);
	if (!access(procs, F_OK) && put(procs, "0"))
		die(service);
}

/* Mounts the disk read-only on /data, if that is requested. */
static void mount_disk(void)
{
	static const char disk[] = "/dev/pmem0";

	if (access("/cell/mount-disk", F_OK))
		return;
	mkdir("/data", 0755);
	if (mount(disk, "/data", "ext4", MS_RDONLY | MS_NOATIME, NULL))
		die(disk);
}

/*
 * Waits until the kernel's work after boot is over, for figures that are to be
 * compared. Under -icount the clock of an idle guest jumps to that time.
 */
static void settle(void)
{
	const struct timespec settled = { .tv_sec = 2 };

	if (!access("/cell/settle", F_OK))
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &settled, NULL);
}

static int open_results(void)
{
	const struct timespec wait = { .tv_nsec = PORT_WAIT_NS };
	glob_t ports;
	int fd, tries;

	for (tries = 0; tries < PORT_TRIES; tries++) {
		if (!glob("/dev/vport*", 0, NULL, &ports)) {
			fd = open(ports.gl_pathv[0], O_WRONLY | O_CLOEXEC);
			globfree(&ports);
			if (fd >= 0)
				return fd;
		}
		nanosleep(&wait, NULL);
	}
	errno = ENODEV;
	die("the results channel");
	return -1;
}

/* Returns the words of a line, ending in NULL; the caller frees the array. */
static char **split(char *line)
{
	char **args = NULL, *save = NULL, *word = strtok_r(line, " \n", &save);
	size_t count = 0;

	for (;;) {
		args = reallocarray(args, count + 1, sizeof(*args));
		if (!args)
			die("a command's words");
		args[count++] = word;
		if (!word)
			return args;
		word = strtok_r(NULL, " \n", &save);
	}
}

/* Returns the exit status as a shell has it: 128 + N for signal N. */
static int run(char **args, int results)
{
	int status;
	pid_t pid;

	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		enter_cgroup();
		dup2(results, STDOUT_FILENO);
		execv(args[0], args);
		fprintf(stderr, "init: cannot run %s: %s\n", args[0], strerror(errno));
		_exit(127);
	}
	/* This also reaps orphans of earlier commands. */
	while (wait(&status) != pid)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(void)
{
	char *line = NULL, **args;
	size_t room = 0;
	int number = 0, results;
	FILE *commands;

	mount_all();
	make_cgroup();
	mount_disk();
	results = open_results();
	settle();
	commands = fopen("/cell/commands", "re");
	if (!commands)
		die("/cell/commands");
	while (getline(&line, &room, commands) > 0) {
		args = split(line);
		if (args[0]) {
			/* The kernel's log shows when each command starts. */
			fprintf(stderr, "init: command %d: %s\n", number, args[0]);
			dprintf(results, "\n{\"command\": %d, \"status\": %d}\n",
				number, run(args, results));
			number++;
		}
		free(args);
	}
	dprintf(results, "{\"commands\": %d}\n", number);
	power_off();
}
