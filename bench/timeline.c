// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "json.h"
#include "memory.h"
#include "timeline.h"

/* The layout of a sample of PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR. */
struct record {
	struct perf_event_header header;
	uint64_t time;
	uint64_t addr;
};

static int open_event(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};

	return syscall(SYS_perf_event_open, &attr, 0, -1, -1,
		       PERF_FLAG_FD_CLOEXEC);
}

/*
 * Room for two faults of every page, in a ring of a power of two of pages. If
 * the kernel's limit for locked memory is lower, faults are lost, and counted.
 */
static void *map_ring(int fd, size_t pages, size_t *size)
{
	size_t want = 2 * pages * sizeof(struct record), data = page_size();

	while (data < want)
		data *= 2;
	for (; data >= page_size(); data /= 2) {
		void *ring;

		*size = page_size() + data;
		ring = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED,
			    fd, 0);
		if (ring != MAP_FAILED)
			return ring;
		if (errno != EPERM && errno != ENOMEM && errno != EINVAL)
			return NULL;
	}
	return NULL;
}

void timeline_open(struct timeline *timeline, void *map, size_t size,
		   bool writes)
{
	timeline->asked = true;
	timeline->begin = map;
	timeline->end = timeline->begin + size;
	timeline->writes = writes;
	timeline->fd = open_event();
	if (timeline->fd < 0) {
		timeline->why = errno == EACCES || errno == EPERM ?
			"perf events are not allowed: sysctl kernel.perf_event_paranoid=2" :
			"this kernel has no perf events: build it with CONFIG_PERF_EVENTS";
		return;
	}
	timeline->open = true;
	timeline->ring = map_ring(timeline->fd, size / page_size(),
				  &timeline->ring_size);
	if (!timeline->ring)
		timeline->why = "no buffer for perf's samples: raise kernel.perf_event_mlock_kb";
}

void timeline_start(struct timeline *timeline)
{
	if (timeline->ring)
		ioctl(timeline->fd, PERF_EVENT_IOC_ENABLE, 0);
}

void timeline_stop(struct timeline *timeline)
{
	if (timeline->ring)
		ioctl(timeline->fd, PERF_EVENT_IOC_DISABLE, 0);
}

/* Copies one record, which may wrap around the ring's end. */
static void copy_record(const struct timeline *timeline, uint64_t at,
			void *to, size_t len)
{
	const struct perf_event_mmap_page *head = timeline->ring;
	const char *data = (const char *)timeline->ring + head->data_offset;

	for (size_t i = 0; i < len; i++)
		((char *)to)[i] = data[(at + i) % head->data_size];
}

static void add_sample(struct timeline *timeline, const struct record *record,
		       uint64_t epoch)
{
	const char *addr = (const char *)(uintptr_t)record->addr;
	struct fault_sample *sample;

	if (addr < timeline->begin || addr >= timeline->end ||
	    record->time < epoch)
		return;
	sample = &timeline->samples[timeline->nr_samples++];
	sample->t_ns = record->time - epoch;
	sample->page = (addr - timeline->begin) / page_size();
	sample->write = false;
}

static void mark_writes(struct timeline *timeline)
{
	size_t pages = (timeline->end - timeline->begin) / page_size();
	bool *later = calloc(pages, sizeof(*later));

	if (!later) {
		timeline->why = "no memory for the samples: give a smaller --size";
		return;
	}
	for (size_t i = timeline->nr_samples; i-- > 0; ) {
		struct fault_sample *sample = &timeline->samples[i];

		sample->write = !later[sample->page];
		later[sample->page] = true;
	}
	free(later);
}

void timeline_collect(struct timeline *timeline, struct timespec epoch)
{
	const struct perf_event_mmap_page *head = timeline->ring;
	uint64_t epoch_ns = epoch.tv_sec * 1000000000ull + epoch.tv_nsec;
	uint64_t at, stop, count, recorded = 0;

	if (!head)
		return;
	stop = __atomic_load_n(&head->data_head, __ATOMIC_ACQUIRE);
	timeline->samples = calloc(stop / sizeof(struct record) + 1,
				   sizeof(*timeline->samples));
	if (!timeline->samples) {
		timeline->why = "no memory for the samples: give a smaller --size";
		return;
	}
	for (at = 0; at < stop; ) {
		struct perf_event_header header;

		copy_record(timeline, at, &header, sizeof(header));
		if (header.type == PERF_RECORD_SAMPLE) {
			struct record record;

			copy_record(timeline, at, &record, sizeof(record));
			add_sample(timeline, &record, epoch_ns);
			recorded++;
		}
		at += header.size;
	}
	/*
	 * A ring that is full at the end has no record of the lost faults; the
	 * event's own count includes them.
	 */
	if (read(timeline->fd, &count, sizeof(count)) == sizeof(count))
		timeline->lost = count - recorded;
	if (timeline->writes)
		mark_writes(timeline);
}

void timeline_print(const struct timeline *timeline, FILE *out)
{
	if (!timeline->asked)
		return;
	if (timeline->why) {
		fputs(",\"timeline\":null,\"timeline_absent\":", out);
		json_string(out, timeline->why);
		return;
	}
	fputs(",\"timeline\":[", out);
	for (size_t i = 0; i < timeline->nr_samples; i++) {
		const struct fault_sample *s = &timeline->samples[i];

		fprintf(out, "%s[%lu,%lu,%d]", i ? "," : "",
			s->t_ns, s->page, s->write);
	}
	fprintf(out, "],\"timeline_lost\":%lu,\"timeline_kinds\":", timeline->lost);
	json_string(out, timeline->writes ? "by order" : "only reads");
}

void timeline_close(struct timeline *timeline)
{
	if (timeline->ring)
		munmap(timeline->ring, timeline->ring_size);
	if (timeline->open)
		close(timeline->fd);
	free(timeline->samples);
	memset(timeline, 0, sizeof(*timeline));
}
