// SPDX-License-Identifier: GPL-2.0
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "rings.h"

/* So many drains without new code: a program is past its start. */
#define CALM	8

/* The part of a fault's sample that all have. */
struct sample {
	struct perf_event_header header;
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t time;
	uint64_t addr;
};

static void copy_record(const struct rings *rings, const struct ring *ring,
			uint64_t at, void *to, size_t size)
{
	size_t start = at & (rings->size - 1), first = rings->size - start;

	if (first > size)
		first = size;
	memcpy(to, ring->data + start, first);
	memcpy((char *)to + first, ring->data, size - first);
}

/* Expects what all rings have by now. */
static void look_ahead(struct rings *rings, struct code *code)
{
	struct code_change record;

	for (size_t i = 0; i < rings->nr_rings; i++) {
		struct ring *ring = &rings->ring[i];
		uint64_t stop = __atomic_load_n(&ring->head->data_head,
						__ATOMIC_ACQUIRE);

		while (ring->expected < stop) {
			copy_record(rings, ring, ring->expected, &record,
				    sizeof(record));
			code_expect(code, &record);
			ring->expected += record.header.size;
		}
	}
}

/* Tells whether a sample is that of a system call, which gets a type of its own. */
static bool is_call(const struct rings *rings, struct sample *sample)
{
	int call = calls_which(&rings->calls, sample->ip);

	if (call >= 0)
		sample->header.type = FT_CALLS + call;
	return call >= 0;
}

static bool drain(struct rings *rings, struct ring *ring, struct code *code,
		  struct output *output)
{
	static union {
		struct perf_event_header header;
		struct sample sample;
		struct code_change change;
		char bytes[UINT16_MAX + 1];
	} record;
	uint64_t at = ring->head->data_tail;
	bool fresh = false;
	uint64_t stop = __atomic_load_n(&ring->head->data_head, __ATOMIC_ACQUIRE);
	struct ft_code read;

	look_ahead(rings, code);
	while (at < stop) {
		copy_record(rings, ring, at, &record, sizeof(record.header));
		copy_record(rings, ring, at, &record, record.header.size);
		at += record.header.size;
		if (record.header.size == sizeof(record.header))
			continue;
		if (record.header.type == PERF_RECORD_SAMPLE &&
		    !is_call(rings, &record.sample)) {
			rings->samples++;
			if (!rings->ignore_thp)
				thp_look(&rings->thp, record.sample.pid,
					 record.sample.time, rings->time,
					 output);
		}
		output_write(output, &record, record.header.size);
		/* At once: the kernel may need the room. */
		__atomic_store_n(&ring->head->data_tail, at, __ATOMIC_RELEASE);
		code_follow(code, &record.change);
		if (record.header.type != PERF_RECORD_SAMPLE)
			continue;
		if ((record.header.misc & PERF_RECORD_MISC_CPUMODE_MASK) !=
		    PERF_RECORD_MISC_USER ||
		    !code_see(code, &read, record.sample.pid, record.sample.ip))
			continue;
		fresh = true;
		look_ahead(rings, code);
		if (read.len && !code_is_of_next(code, record.sample.pid))
			output_write(output, &read, sizeof(read));
	}
	__atomic_store_n(&ring->head->data_tail, at, __ATOMIC_RELEASE);
	return fresh;
}

static void set_wakers(const struct rings *rings, unsigned long request)
{
	for (size_t i = 0; i < rings->nr_rings; i++)
		if (rings->ring[i].waker >= 0)
			ioctl(rings->ring[i].waker, request, 0);
}

void rings_drain(struct rings *rings, struct code *code, struct output *output)
{
	bool fresh = false;

	rings->time = now();
	/* Before the rings are read: what is written later is of a later round. */
	output_round(output);
	for (size_t i = 0; i < rings->nr_rings; i++)
		fresh |= drain(rings, &rings->ring[i], code, output);
	if (fresh && rings->calm >= CALM)
		set_wakers(rings, PERF_EVENT_IOC_ENABLE);
	rings->calm = fresh ? 0 : rings->calm + 1;
	if (rings->calm == CALM)
		set_wakers(rings, PERF_EVENT_IOC_DISABLE);
}

void rings_disable(struct rings *rings)
{
	for (size_t i = 0; i < rings->nr_events; i++)
		ioctl(rings->events[i], PERF_EVENT_IOC_DISABLE, 0);
	calls_set(&rings->calls, PERF_EVENT_IOC_DISABLE);
	set_wakers(rings, PERF_EVENT_IOC_DISABLE);
}

uint64_t rings_count(const struct rings *rings)
{
	uint64_t sum = 0, count;

	for (size_t i = 0; i < rings->nr_events; i++)
		if (read(rings->events[i], &count, sizeof(count)) ==
		    sizeof(count))
			sum += count;
	return sum;
}
