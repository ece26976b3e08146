// SPDX-License-Identifier: GPL-2.0
/*
 * A program starts and ends: vfork(2), execve(2), exit and wait.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch.h"
#include "operation.h"
#include "program.h"

#define NOT_STARTED	127
#define DYNAMIC		"/bin/true"
/* A multiple of every page size. */
#define LOADED_AT	0x400000ul

/* The least file that the kernel executes: one segment, without data. */
struct least_program {
	struct elf64_hdr header;
	struct elf64_phdr segment;
	uint32_t words[3];
};

static const struct least_program least_program = {
	.header = {
		.e_ident = {
			ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
			ELFDATA2LSB, EV_CURRENT,
		},
		.e_type = ET_EXEC, .e_machine = ELF_MACHINE,
		.e_version = EV_CURRENT,
		.e_entry = LOADED_AT + offsetof(struct least_program, words),
		.e_phoff = offsetof(struct least_program, segment),
		.e_ehsize = sizeof(struct elf64_hdr),
		.e_phentsize = sizeof(struct elf64_phdr), .e_phnum = 1,
	},
	.segment = {
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = LOADED_AT,
		.p_filesz = sizeof(struct least_program),
		.p_memsz = sizeof(struct least_program), .p_align = 65536,
	},
	.words = EXIT_WORDS,
};

/* Random addresses would decide how many page tables a program has. */
static const char *count_children(struct area *area)
{
	area->who = RUSAGE_CHILDREN;
	return personality(ADDR_NO_RANDOMIZE) < 0 ?
	       "addresses stay random here: run it outside of the container" : NULL;
}

/* No file is executed while it can be written. */
static const char *open_least(struct area *area)
{
	int written = memfd_create("least", MFD_CLOEXEC);
	char path[64];

	if (write(written, &least_program, sizeof(least_program)) !=
	    sizeof(least_program))
		return "no memory for a file: free some";
	snprintf(path, sizeof(path), "/proc/self/fd/%d", written);
	area->other_fd = open(path, O_RDONLY | O_CLOEXEC);
	close(written);
	return area->other_fd < 0 ? "no /proc is mounted: mount it" :
				    count_children(area);
}

static const char *open_ftbench(struct area *area)
{
	area->other_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (area->other_fd < 0)
		return "no /proc is mounted: mount it";
	area->fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	return area->fd < 0 ? "no /dev/null is there: make it" :
			      count_children(area);
}

static const char *look_for_dynamic(struct area *area)
{
	const char *root = param_text(area->run, "root");
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s" DYNAMIC, root);
	if (access(path, X_OK))
		return "there is no " DYNAMIC ": name a directory that has it by --root";
	if (strcmp(root, "/") && geteuid())
		return "only root may execute below another --root: run as root";
	return count_children(area);
}

/* Executes a file that is open already, or @argv[0] below --root; returns if it fails. */
static void execute(struct area *area, char *const argv[])
{
	const char *root = param_text(area->run, "root");
	char *const environment[] = { NULL };

	if (area->other_fd >= 0)
		execveat(area->other_fd, "", argv, environment, AT_EMPTY_PATH);
	else if (!strcmp(root, "/") || !chroot(root))
		execve(argv[0], argv, environment);
}

/* Runs a program, or without @argv the end of a child, again and again. */
static int64_t start(struct area *area, char *const argv[])
{
	const int64_t rounds = param_number(area->run, "rounds");

	for (int64_t i = 0; i < rounds; i++) {
		pid_t child = vfork();
		int status;

		if (!child) {
			if (!argv)
				_exit(0);
			if (area->fd >= 0)
				dup2(area->fd, STDOUT_FILENO);
			execute(area, argv);
			_exit(NOT_STARTED);
		}
		if (child < 0 || waitpid(child, &status, 0) != child)
			return -errno;
		if (status)
			return -ENOEXEC;
	}
	return rounds;
}

static int64_t end_child(struct area *area)
{
	return start(area, NULL);
}

static int64_t start_least(struct area *area)
{
	char *const argv[] = { "least", NULL };

	return start(area, argv);
}

static int64_t start_ftbench(struct area *area)
{
	char *const argv[] = { "ftbench", "--files", NULL };

	return start(area, argv);
}

static int64_t start_dynamic(struct area *area)
{
	char *const argv[] = { DYNAMIC, NULL };

	return start(area, argv);
}

static const struct operation operations[] = {
	{ "child", count_children, end_child },
	{ "least", open_least, start_least },
	{ "ftbench", open_ftbench, start_ftbench },
	{ "dynamic", look_for_dynamic, start_dynamic },
	{ }
};

static const char *operation_name(size_t place)
{
	return operations[place].name;
}

static enum status measure(struct run *run)
{
	return operation_measure(run, operations, NULL);
}

static const struct param params[] = {
	OPERATION_PARAM("least"),
	{
		.name = "rounds", .help = "starts",
		.type = PARAM_COUNT, .def = "100", .min = 1, .max = 1000000000,
	},
	{ }
};

static const struct metric metrics[] = {
	OPERATIONS_METRIC,
	{ }
};

static const struct experiment program_start = {
	.name = "program-start",
	.summary = "a program starts and ends",
	.detail =
"child: a child of vfork ends at once, the floor. least: it executes a file in memory\n"
"that has one segment of three instructions, which end it. ftbench: it executes this\n"
"program, which is static, as ftbench --files. dynamic: it executes " DYNAMIC " with its\n"
"loader and its C library. Addresses are not random. page_faults are the children's.",
	.example = "--operation least --rounds 100",
	.params = params,
	.metrics = metrics,
	.shared_params = program_param,
	.measure = measure,
};

EXPERIMENT(program_start);
