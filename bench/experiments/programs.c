// SPDX-License-Identifier: GPL-2.0
/*
 * Programs that people run, each doing a small fixed part of its work. Which of
 * them touch pages first by an instruction that reads and writes?
 */
#include <string.h>

#include "program.h"
#include "run.h"

#define MAX_ARGV	16
#define STRESS_NG	"/usr/bin/stress-ng", "--no-rand-seed", "--temp-path", "/tmp"

struct program {
	const char *name;
	const char *argv[MAX_ARGV];
};

static const struct program programs[] = {
	{ "stress-ng-vm", {
		STRESS_NG, "--vm", "1", "--vm-bytes", "64M", "--vm-method", "incdec",
		"--vm-ops", "200",
	} },
	{ "stress-ng-fault", { STRESS_NG, "--fault", "1", "--fault-ops", "500" } },
	{ "stress-ng-malloc", {
		STRESS_NG, "--malloc", "1", "--malloc-ops", "2000", "--malloc-touch",
	} },
	{ "stress-ng-shm", {
		STRESS_NG, "--shm", "1", "--shm-objs", "2", "--shm-bytes", "8M",
		"--shm-ops", "4",
	} },
	{ "stress-ng-atomic", { STRESS_NG, "--atomic", "1", "--atomic-ops", "4" } },
	{ "stress-ng-mmap", {
		STRESS_NG, "--mmap", "1", "--mmap-bytes", "4M", "--mmap-ops", "4",
	} },
	{ "stress-ng-mremap", {
		STRESS_NG, "--mremap", "1", "--mremap-bytes", "4M", "--mremap-ops", "20",
	} },
	{ "stress-ng-madvise", { STRESS_NG, "--madvise", "1", "--madvise-ops", "10" } },
	{ "stress-ng-userfaultfd", {
		STRESS_NG, "--userfaultfd", "1", "--userfaultfd-bytes", "4M",
		"--userfaultfd-ops", "4000",
	} },
	/* KSM may merge all that it maps. */
	{ "stress-ng-ksm", {
		STRESS_NG, "--ksm", "--vm", "1", "--vm-bytes", "16M", "--vm-method",
		"zero-one", "--vm-ops", "50",
	} },
	{ "stress-ng-fork", { STRESS_NG, "--fork", "1", "--fork-ops", "200" } },
	{ "stress-ng-vma", { STRESS_NG, "--vma", "1", "--vma-ops", "500" } },
	{ "stress-ng-mprotect", { STRESS_NG, "--mprotect", "1", "--mprotect-ops", "500" } },
	{ "stress-ng-numa", { STRESS_NG, "--numa", "1", "--numa-ops", "200" } },
	/* Makes a cluster, starts its server, and fills the shared buffers. */
	{ "postgresql", {
		"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
		"/usr/lib/postgresql/17/bin/initdb", "--pgdata=/tmp/cluster", "--no-sync",
		"--set", "huge_pages=off", "--set", "shared_buffers=128MB",
	} },
	{ "sqlite", {
		"/usr/bin/sqlite3", ":memory:", "create table t(k integer primary key, v text)",
		"insert into t select value, hex(value * 7919) from generate_series(1, 50000)",
		"select count(v) from t",
	} },
	{ "python", {
		"/usr/bin/python3", "-S", "-c", "x = [bytearray(4096) for _ in range(16384)]",
	} },
};

static const char *program_name(size_t place)
{
	return place < ARRAY_SIZE(programs) ? programs[place].name : NULL;
}

static enum status measure(struct run *run)
{
	const char *name = param_text(run, "program");
	char *argv[MAX_ARGV];
	size_t i = 0;

	while (strcmp(programs[i].name, name))
		i++;
	memcpy(argv, programs[i].argv, sizeof(argv));
	return program_measure(run, &(struct command) {
		.root = param_text(run, "root"), .argv = argv, .look = true,
	});
}

static const struct param params[] = {
	{
		.name = "program", .help = "which, and what it does",
		.type = PARAM_CHOICE, .choices = program_name, .def = "stress-ng-vm",
	},
	{ }
};

static const struct metric metrics[] = {
	{ }
};

static const struct experiment programs_experiment = {
	.name = "programs",
	.summary = "programs that people run, and how they first touch their pages",
	.detail =
"Runs a program of Debian's with fixed arguments, from its start to its end, and\n"
"counts all of its faults and of its children's.",
	.example = "--program stress-ng-vm",
	.params = params,
	.metrics = metrics,
	.shared_params = program_param,
	.shared_metrics = program_metric,
	.measure = measure,
};

EXPERIMENT(programs_experiment);
