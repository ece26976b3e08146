/* SPDX-License-Identifier: GPL-2.0 */
/* What the tests of write-intent faults touch memory with, and what they see. */
#ifndef ARM64_WRITE_INTENT_H
#define ARM64_WRITE_INTENT_H

#include <asm/hwcap.h>
#include <asm/sigcontext.h>
#include <fcntl.h>
#include <linux/const.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#include "../../kselftest.h"

#define CGROUPS		"/tmp/write_intent_cgroup"
#define SYSCTL		"/proc/sys/vm/write_intent"
#define ESR_WNR		_BITUL(6)

enum intent { LOAD, STORE, RMW, EXCLUSIVE };

struct instruction {
	const char *name;
	void (*touch)(void *p);
	enum intent intent;
	uint64_t result;	/* in memory that was zero */
	bool lse;
};

/* Adds or puts 1 where it writes: to the first, or the first two, words. */
#define INSTRUCTION(name, text)						\
static void touch_##name(void *p)					\
{									\
	asm volatile(".arch armv8.1-a\n" text				\
		     : : "r" (p)					\
		     : "x8", "x9", "x10", "x11", "x12", "cc", "memory");\
}

INSTRUCTION(load, "ldr x9, [%0]")
INSTRUCTION(store, "mov x8, #1\n str x8, [%0]")
INSTRUCTION(ldadd, "mov x8, #1\n ldadd x8, x9, [%0]")
INSTRUCTION(stadd, "mov x8, #1\n stadd x8, [%0]")
INSTRUCTION(ldsetb, "mov w8, #1\n ldsetalb w8, w9, [%0]")
INSTRUCTION(swp, "mov x8, #1\n swp x8, x9, [%0]")
INSTRUCTION(cas, "mov x8, #0\n mov x9, #1\n cas x8, x9, [%0]")
INSTRUCTION(cas_fails, "mov x8, #5\n mov x9, #1\n casal x8, x9, [%0]")
INSTRUCTION(casp, "mov x8, #0\n mov x9, #0\n mov x10, #1\n mov x11, #1\n"
	    "casp x8, x9, x10, x11, [%0]")
INSTRUCTION(ldxr, "1: ldxr x8, [%0]\n add x8, x8, #1\n"
	    "stxr w9, x8, [%0]\n cbnz w9, 1b")
INSTRUCTION(ldaxrb, "1: ldaxrb w8, [%0]\n add w8, w8, #1\n"
	    "stlxrb w9, w8, [%0]\n cbnz w9, 1b")
INSTRUCTION(ldxp, "1: ldxp x8, x10, [%0]\n add x8, x8, #1\n"
	    "stxp w9, x8, x10, [%0]\n cbnz w9, 1b")
INSTRUCTION(ldxr_alone, "ldxr x8, [%0]\n clrex")

static const struct instruction instructions[] = {
	{ "load", touch_load, LOAD, 0, false },
	{ "store", touch_store, STORE, 1, false },
	{ "ldadd", touch_ldadd, RMW, 1, true },
	{ "stadd", touch_stadd, RMW, 1, true },
	{ "ldsetalb", touch_ldsetb, RMW, 1, true },
	{ "swp", touch_swp, RMW, 1, true },
	{ "cas", touch_cas, RMW, 1, true },
	{ "cas that fails", touch_cas_fails, RMW, 0, true },
	{ "casp", touch_casp, RMW, 1, true },
	{ "ldxr/stxr", touch_ldxr, EXCLUSIVE, 1, false },
	{ "ldaxrb/stlxrb", touch_ldaxrb, EXCLUSIVE, 1, false },
	{ "ldxp/stxp", touch_ldxp, EXCLUSIVE, 1, false },
	{ "ldxr alone", touch_ldxr_alone, EXCLUSIVE, 0, false },
};

#define NR_INSTRUCTIONS	ARRAY_SIZE(instructions)
#define INSTRUCTION_STORE	(&instructions[1])

static inline bool instruction_available(const struct instruction *i)
{
	return !i->lse || getauxval(AT_HWCAP) & HWCAP_ATOMICS;
}

enum mode { OFF, ON, NR_MODES };

static const char * const mode_names[] = { "0", "1" };

static inline bool write_file(const char *path, const char *text)
{
	ssize_t length = strlen(text);
	int fd = open(path, O_WRONLY | O_TRUNC);
	bool written;

	if (fd < 0)
		return false;
	written = write(fd, text, length) == length;
	close(fd);
	return written;
}

/* Returns the length of the text, 0 if there is none. */
static inline size_t read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY);
	size_t length = 0;
	ssize_t got;

	while (fd >= 0 && length < size - 1) {
		got = read(fd, text + length, size - 1 - length);
		if (got <= 0)
			break;
		length += got;
	}
	text[length] = '\0';
	if (fd >= 0)
		close(fd);
	return length;
}

/* A setting that is put back when the test ends. */
static struct setting {
	const char *path;
	char text[64];
} settings[8];

static pid_t main_process;

static inline void restore_settings(void)
{
	if (getpid() != main_process)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(settings) && settings[i].path; i++)
		write_file(settings[i].path, settings[i].text);
}

/* Writes to a setting; returns false if there is none, or it refuses. */
static inline bool set(const char *path, const char *text)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(settings) && settings[i].path &&
	       strcmp(settings[i].path, path))
		i++;
	if (i == ARRAY_SIZE(settings))
		ksft_exit_fail_msg("no room to remember %s\n", path);
	if (!settings[i].path) {
		if (!read_file(path, settings[i].text, sizeof(settings[i].text)))
			return false;
		settings[i].path = path;
		if (!main_process) {
			main_process = getpid();
			atexit(restore_settings);
		}
	}
	return write_file(path, text);
}

/* Returns whether the kernel has the feature and took the mode. */
static inline bool set_mode(enum mode mode)
{
	return set(SYSCTL, mode_names[mode]);
}

#define CONTROLLERS	CGROUPS "/cgroup.subtree_control"
static bool enabled_memory;

/*
 * Makes a directory of CGROUPS whose memory is counted, if the kernel can.
 * What was mounted, made and enabled is gone when leave_groups() returns.
 */
static inline void make_group(const char *group)
{
	char controllers[256];

	mkdir(CGROUPS, 0755);
	mount("none", CGROUPS, "cgroup2", 0, NULL);
	read_file(CONTROLLERS, controllers, sizeof(controllers));
	enabled_memory = !strstr(controllers, "memory") &&
			 write_file(CONTROLLERS, "+memory");
	mkdir(group, 0755);
}

static inline void leave_groups(const char *group)
{
	write_file(CGROUPS "/cgroup.procs", "0");
	rmdir(group);
	if (enabled_memory)
		write_file(CONTROLLERS, "-memory");
	umount(CGROUPS);
	rmdir(CGROUPS);
}

/* What came of touching memory. */
struct outcome {
	long faults;
	int signo;
	int code;
	bool at_address;	/* si_addr is the address touched */
	bool wnr;
};

static struct {
	sigjmp_buf back;
	siginfo_t info;
	unsigned long esr;
} caught;

static inline unsigned long esr_of(void *context)
{
	struct _aarch64_ctx *head;

	head = (void *)((ucontext_t *)context)->uc_mcontext.__reserved;
	while (head->magic && head->magic != ESR_MAGIC)
		head = (void *)head + head->size;
	return head->magic ? ((struct esr_context *)head)->esr : 0;
}

static inline void catch(int signo, siginfo_t *info, void *context)
{
	caught.info = *info;
	caught.esr = esr_of(context);
	siglongjmp(caught.back, 1);
}

static inline long faults_so_far(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

#define TAG_SHIFT	56

static inline void *with_tag(void *p, unsigned long tag)
{
	return (void *)((uintptr_t)p | tag << TAG_SHIFT);
}

static inline void *without_tag(void *p)
{
	return (void *)((uintptr_t)p & (_BITUL(TAG_SHIFT) - 1));
}

static inline struct outcome touch(const struct instruction *i, void *p)
{
	struct outcome outcome = { 0 };
	long before;

	memset(&caught, 0, sizeof(caught));
	before = faults_so_far();
	if (!sigsetjmp(caught.back, 1))
		i->touch(p);
	outcome.faults = faults_so_far() - before;
	outcome.signo = caught.info.si_signo;
	if (outcome.signo) {
		outcome.code = caught.info.si_code;
		/* It comes without the tag of the pointer. */
		outcome.at_address = caught.info.si_addr == without_tag(p);
		outcome.wnr = caught.esr & ESR_WNR;
	}
	return outcome;
}

/* Call first: handlers, and the pages that handlers and counting need. */
static inline void catch_signals(void)
{
	struct sigaction action = {
		.sa_sigaction = catch, .sa_flags = SA_SIGINFO | SA_NODEFER,
	};
	void *none = mmap(NULL, getpagesize(), PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	touch(INSTRUCTION_STORE, none);
	munmap(none, getpagesize());
}

static inline bool same_signal(const struct outcome *a, const struct outcome *b)
{
	return a->signo == b->signo && a->code == b->code &&
	       a->at_address == b->at_address && a->wnr == b->wnr;
}

static inline void print_outcome(const char *what, const struct outcome *o)
{
	ksft_print_msg("%s: %ld faults, signal %d, code %d, %s address, WnR %d\n",
		       what, o->faults, o->signo, o->code,
		       o->at_address ? "this" : "another", o->wnr);
}

#endif /* ARM64_WRITE_INTENT_H */
