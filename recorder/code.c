// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "code.h"

/* Bounds the memory; when that is full, all are read again. */
#define PLACES		262144u
#define MOST_SEEN	(PLACES / 4 * 3)

bool code_open(struct code *code)
{
	*code = (struct code) { .seen = calloc(PLACES, sizeof(*code->seen)) };
	return code->seen;
}

/* Of 64 bits, so that two of them are hardly ever the same. */
static uint64_t mix(uint64_t process, uint64_t ip)
{
	uint64_t hash = ip * 0x9e3779b97f4a7c15ull ^ process;

	hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93ull;
	return (hash ^ hash >> 32) | 1;
}

static uint32_t *changes(struct code *code, pid_t pid)
{
	return &code->changes[pid % PROCESSES];
}

static uint32_t *execs(struct code *code, pid_t pid)
{
	return &code->execs[pid % PROCESSES];
}

static bool is_exec(const struct code_change *record)
{
	return record->header.type == PERF_RECORD_COMM &&
	       record->header.misc & PERF_RECORD_MISC_COMM_EXEC;
}

/* Tells whether a process has other code from now on. */
static bool is_change(const struct code_change *record)
{
	switch (record->header.type) {
	case PERF_RECORD_COMM:
		return is_exec(record);
	case PERF_RECORD_FORK:
		/* Of a process, whose number may have been another's before. */
		return record->pid != record->parent;
	case PERF_RECORD_MMAP2:
		/* Of executable memory; also when its protection changes. */
		return !(record->header.misc & PERF_RECORD_MISC_MMAP_DATA);
	default:
		return false;
	}
}

void code_expect(struct code *code, const struct code_change *record)
{
	if (is_exec(record))
		++*execs(code, record->pid);
}

void code_follow(struct code *code, const struct code_change *record)
{
	if (is_exec(record))
		--*execs(code, record->pid);
	if (is_change(record))
		++*changes(code, record->pid);
}

bool code_is_of_next(struct code *code, pid_t pid)
{
	return *execs(code, pid);
}

static bool is_new(struct code *code, uint64_t hash)
{
	size_t place = hash >> 8 & (PLACES - 1);

	for (; code->seen[place]; place = (place + 1) & (PLACES - 1))
		if (code->seen[place] == hash)
			return false;
	if (code->used == MOST_SEEN) {
		memset(code->seen, 0, PLACES * sizeof(*code->seen));
		code->used = 0;
	}
	code->seen[place] = hash;
	code->used++;
	return true;
}

bool code_see(struct code *code, struct ft_code *record, pid_t pid, uint64_t ip)
{
	uint64_t page = sysconf(_SC_PAGESIZE), left = page - (ip & (page - 1));
	struct iovec here = { .iov_base = record->code, .iov_len = FT_CODE_BYTES };
	struct iovec there[2] = {
		{ .iov_base = (void *)ip, .iov_len = FT_CODE_BYTES },
		{ .iov_base = (void *)(ip + left) },
	};
	ssize_t len;

	if (!is_new(code, mix((uint64_t)*changes(code, pid) << 32 | pid, ip)))
		return false;
	/* The next page may not be readable: it is a part of its own. */
	if (left < FT_CODE_BYTES) {
		there[0].iov_len = left;
		there[1].iov_len = FT_CODE_BYTES - left;
	}
	len = process_vm_readv(pid, &here, 1, there, 2, 0);
	record->header = ft_header(FT_CODE, sizeof(*record));
	record->pid = pid;
	record->len = len < 0 ? 0 : len;
	record->ip = ip;
	return true;
}
