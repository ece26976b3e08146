// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "upgrades.h"

#define NUMBER	"/sys/kernel/tracing/events/write_intent/write_intent/id"

/* What the event records, as linux/include/trace/events/write_intent.h has it. */
struct sample {
	struct perf_event_header header;
	uint64_t number;
	uint32_t pid, tid;
	uint64_t time;
	struct __attribute__((packed)) {
		uint32_t size;
		uint64_t common;
		uint64_t address;
	} raw;
};

uint64_t upgrades_tracepoint(void)
{
	FILE *file = fopen(NUMBER, "re");
	unsigned long number = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%lu", &number) != 1)
		number = 0;
	fclose(file);
	return number;
}

struct perf_event_attr upgrades_event(uint64_t tracepoint)
{
	return (struct perf_event_attr) {
		.type = PERF_TYPE_TRACEPOINT,
		.config = tracepoint,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID |
			       PERF_SAMPLE_TIME | PERF_SAMPLE_RAW,
	};
}

void upgrades_unpack(struct perf_event_header *record, uint64_t upgrade)
{
	const struct sample *sample = (const struct sample *)record;
	char *body = (char *)(record + 1);

	if (record->type == PERF_RECORD_SAMPLE && sample->number == upgrade) {
		struct ft_upgrade told = {
			.header = ft_header(FT_UPGRADE, sizeof(told)),
			.pid = sample->pid,
			.tid = sample->tid,
			.time = sample->time,
			.address = sample->raw.address,
		};

		memcpy(record, &told, sizeof(told));
		return;
	}
	/* A sample begins with it; other records end with it. */
	record->size -= sizeof(uint64_t);
	if (record->type == PERF_RECORD_SAMPLE)
		memmove(body, body + sizeof(uint64_t), record->size - sizeof(*record));
}
