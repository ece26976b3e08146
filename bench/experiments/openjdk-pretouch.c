// SPDX-License-Identifier: GPL-2.0
/*
 * A Java virtual machine that touches its whole heap before it starts. Servers
 * are configured like this so that no request waits for a first touch.
 */
#include <stdio.h>
#include <string.h>

#include "arch.h"
#include "cpus.h"
#include "memory.h"
#include "program.h"
#include "result.h"
#include "thp.h"

static const char * const releases[] = { "21", "25", NULL };
static const char * const policies[] = { "never", "madvise", "always", NULL };
static const char * const on_or_off[] = { "off", "on", NULL };

static const struct {
	const char *name, *option;
} collectors[] = {
	{ "serial", "-XX:+UseSerialGC" },
	{ "parallel", "-XX:+UseParallelGC" },
	{ "g1", "-XX:+UseG1GC" },
};

static const char *collector_name(size_t place)
{
	return place < ARRAY_SIZE(collectors) ? collectors[place].name : NULL;
}

static const char *collector_option(const char *name)
{
	size_t i = 0;

	while (strcmp(collectors[i].name, name))
		i++;
	return collectors[i].option;
}

static enum status measure(struct run *run)
{
	bool madvise = !strcmp(param_text(run, "thp"), "madvise");
	bool pretouch = !strcmp(param_text(run, "pretouch"), "on");
	uint64_t heap = param_number(run, "heap");
	char java[96], initial[32], maximal[32];
	char *argv[9], **next = argv;
	enum status status;
	bool unavailable;

	status = memory_check_size(run, "heap", page_size(), "page");
	if (!status)
		status = cpus_keep_to(run);
	if (status)
		return status;
	status = thp_require(run, param_text(run, "thp"),
			     param_number(run, "set-thp"), &unavailable);
	if (status || unavailable)
		return status;

	snprintf(java, sizeof(java), "/usr/lib/jvm/java-%s-openjdk-" DEBIAN_ARCH "/bin/java",
		 param_text(run, "java"));
	snprintf(initial, sizeof(initial), "-Xms%luk", heap / 1024);
	snprintf(maximal, sizeof(maximal), "-Xmx%luk", heap / 1024);
	*next++ = java;
	*next++ = (char *)collector_option(param_text(run, "collector"));
	*next++ = initial;
	*next++ = maximal;
	if (pretouch)
		*next++ = "-XX:+AlwaysPreTouch";
	/* Under this policy only memory that asks for huge pages gets them. */
	if (madvise)
		*next++ = "-XX:+UseTransparentHugePages";
	*next++ = "-version";
	*next = NULL;

	result_add(run, "heap_pages", heap / page_size());
	return program_measure(run, &(struct command) {
		.root = param_text(run, "root"), .argv = argv, .look = true,
	});
}

static const struct param params[] = {
	{
		.name = "java", .help = "release of Debian's openjdk-N-jre-headless",
		.type = PARAM_CHOICE, .words = releases, .def = "21",
	},
	{
		.name = "collector", .help = "garbage collector",
		.type = PARAM_CHOICE, .choices = collector_name, .def = "g1",
	},
	{
		.name = "thp", .help = "the policy of transparent huge pages",
		.type = PARAM_CHOICE, .words = policies, .def = "never",
	},
	{
		.name = "pretouch", .help = "-XX:+AlwaysPreTouch",
		.type = PARAM_CHOICE, .words = on_or_off, .def = "on",
	},
	{
		.name = "heap", .help = "bytes of heap, initial and maximal",
		.type = PARAM_SIZE, .def = "536870912", .min = 8388608,
	},
	CPUS_PARAM("that the machine finds; the collector has as many threads"),
	{
		.name = "set-thp", .type = PARAM_FLAG, .option = true,
		.help = "write the policy that --thp names (root; it stays)",
	},
	{ }
};

static const struct metric metrics[] = {
	{ .name = "heap_pages", .unit = "pages", .help = "base pages in the heap" },
	{ }
};

static const struct experiment openjdk_pretouch = {
	.name = "openjdk-pretouch",
	.summary = "a Java virtual machine that touches its heap before it starts",
	.detail =
"Runs java -version with a heap of a fixed size from Debian's headless runtime, and\n"
"measures all of the process's life. What --pretouch on takes beyond --pretouch off\n"
"is the first touch of the heap. With --thp madvise the machine is asked to use huge\n"
"pages (-XX:+UseTransparentHugePages), with always it has them without asking.",
	.example = "--java 21 --collector g1 --pretouch on",
	.params = params,
	.metrics = metrics,
	.shared_params = program_param,
	.shared_metrics = program_metric,
	.measure = measure,
};

EXPERIMENT(openjdk_pretouch);
