/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the recorder writes: FT_MAGIC, then records. Each record begins with a
 * struct perf_event_header. Those of the kernel are written as they are in its
 * rings (perf_event_open(2)); those of the recorder have a type from FT_START on.
 * firsttouch/trace/records.py reads the file. All is in the byte order of the
 * machine that recorded, which is little-endian on arm64 and x86-64.
 *
 * A sample has PERF_SAMPLE_IP, _TID, _TIME and _ADDR, _CALLCHAIN with
 * FT_CALL_CHAINS, _REGS_USER (x86-64: RSI, RDI and RIP; arm64: PC), _STACK_USER with
 * FT_CALL_CHAINS, and _DATA_PAGE_SIZE with FT_MAPPED. With FT_CALL_CHAINS the registers
 * that unwinding begins with are there, too (x86-64: RSI, RDI, RBP, RSP and RIP; arm64:
 * FP, LR, SP and PC). Other records of the kernel end in pid, tid and time
 * (sample_id_all). Times are those of CLOCK_MONOTONIC.
 *
 * The sample of a system call has a type of the recorder's, and PERF_SAMPLE_IDENTIFIER,
 * _IP, _TID, _TIME, _CALLCHAIN with FT_CALL_CHAINS, and _RAW: the call's arguments, or
 * what it returned, of 8 bytes each, are the last there but for 4 bytes. With FT_CALL_CHAINS
 * _REGS_USER and _STACK_USER follow, as of a fault.
 */
#ifndef FORMAT_H
#define FORMAT_H

#include <linux/perf_event.h>
#include <stdint.h>

#define FT_MAGIC	"FTTRACE3"

enum ft_type {
	FT_START = 100,
	FT_ROUND,
	FT_CODE,
	FT_MAPS,
	FT_END,
	FT_ERROR,
	/* 106, 108, 110 and 111 are older recorders'. */
	FT_NAMES = 107,
	FT_BUILD_IDS = 109,
	FT_NO_THP = 112,
	/* The samples of system calls follow, FT_CALLS + enum ft_call. */
	FT_CALLS,
};

/* A system call begins, or mremap(2) returns. */
enum ft_call {
	FT_MUNMAP,
	FT_BRK,
	FT_MADVISE,
	FT_MREMAP,
	FT_MREMAPPED,
	FT_NR_CALLS,
};

enum ft_flags {
	FT_CALL_CHAINS	= 1,
	/* Faults taken in the kernel are recorded, too. */
	FT_KERNEL	= 2,
	/* It ran already: FT_MAPS has its mappings, PERF_RECORD_COMM its threads' names. */
	FT_ATTACHED	= 4,
	/* 8, 16 and 64 are older recorders'. */
	/* Each sample tells what was mapped at its address; from Linux 5.11 on. */
	FT_MAPPED	= 32,
	/* System calls are recorded. */
	FT_SAYS_CALLS	= 128,
};

struct ft_start {
	struct perf_event_header header;
	uint32_t flags;
	/* e_machine of ELF: 62 for x86-64, 183 for arm64. */
	uint32_t machine;
	uint32_t page_size;
	/* The traced process. */
	uint32_t pid;
	uint64_t time;
	/* Bytes of one CPU's ring. */
	uint64_t ring;
};

/* No record that follows is older than the round before the last one. */
struct ft_round {
	struct perf_event_header header;
	uint64_t time;
};

/* What was at a pc when its first sample was read; the code follows. */
#define FT_CODE_BYTES	64

struct ft_code {
	struct perf_event_header header;
	uint32_t pid;
	uint32_t len;
	uint64_t ip;
	unsigned char code[FT_CODE_BYTES];
};

/*
 * A part of /proc/PID/maps (FT_MAPS), of the build IDs of files that it names
 * (FT_BUILD_IDS, before it: in each line a build ID in hexadecimal, a space, and
 * the path), or a sentence that says why there is no trace (FT_ERROR); or the
 * kernel's release and the words of the command, each ended by a NUL (FT_NAMES). The
 * data follow, padded to 8 bytes.
 */
struct ft_data {
	struct perf_event_header header;
	uint32_t pid;
	uint32_t len;
};

/* The process forbids huge pages for itself, since the fault that follows or before it. */
struct ft_no_thp {
	struct perf_event_header header;
	uint32_t pid;
	uint32_t zero;
	uint64_t time;
};

struct ft_end {
	struct perf_event_header header;
	/* As from waitpid(2); -1 if the process goes on. */
	int32_t status;
	/* KiB, of the largest process of the command; 0 for one that ran already. */
	uint32_t resident;
	uint64_t time;
	/* What the events counted, and how many of them the recorder got. */
	uint64_t faults;
	uint64_t samples;
	/* getrusage's faults of the command and all it waited for, after exec. */
	uint64_t minor;
	uint64_t major;
	/* Its ns of system time of the same; older files end before it. */
	uint64_t system;
};

#endif
