// SPDX-License-Identifier: GPL-2.0
/*
 * Several threads read, write, discard, protect and move pages at random for
 * 100,000 operations, and every page must hold what was last done to it:
 * a copy of a zero page is made in time, and never is the zero page written.
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "zero_page.h"

#define THREADS		4
#define OPERATIONS	25000	/* by each of them */
#define PAGES		256	/* of each of them */

struct worker {
	pthread_t thread;
	const struct zero_pages *z;
	char *map;
	unsigned char *expected;	/* what each page is filled with */
	char *shared;			/* by all, only ever read */
	__u64 random;
	const char *wrong;
};

/* xorshift64: the same sequence on every machine. */
static __u64 next_random(struct worker *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return w->random;
}

static const char *operate(struct worker *w)
{
	size_t page = w->z->page;
	size_t i = next_random(w) % PAGES;
	char *at = w->map + i * page;

	switch (next_random(w) % 8) {
	case 0:
	case 1:
		if (!all_equal(at, w->expected[i], page))
			return "a page does not hold what was written to it";
		break;
	case 2:
		w->expected[i] = 1 + next_random(w) % 255;
		memset(at, w->expected[i], page);
		break;
	case 3:
		/* An atomic of zero: read fault, then a copy, same contents. */
		__atomic_fetch_add((__u64 *)at, 0, __ATOMIC_RELAXED);
		break;
	case 4:
		if (madvise(at, page, MADV_DONTNEED))
			return "MADV_DONTNEED failed";
		w->expected[i] = 0;
		break;
	case 5:
		if (mprotect(at, page, PROT_READ) ||
		    !all_equal(at, w->expected[i], page) ||
		    mprotect(at, page, PROT_READ | PROT_WRITE))
			return "a page changed while it was read-only";
		break;
	case 6: {
		/* To the address of another page, which has any colour. */
		size_t to = next_random(w) % PAGES;

		if (to == i)
			break;
		if (mremap(at, page, page, MREMAP_MAYMOVE | MREMAP_FIXED,
			   w->map + to * page) == MAP_FAILED)
			return "mremap failed";
		w->expected[to] = w->expected[i];
		if (mmap(at, page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
			return "mmap failed";
		w->expected[i] = 0;
		break;
	}
	case 7:
		if (!all_zero(w->shared + i * page, page))
			return "a page that nobody writes is not zero";
		break;
	}
	return NULL;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < OPERATIONS && !w->wrong; i++)
		w->wrong = operate(w);
	return NULL;
}

int main(void)
{
	struct zero_pages z = zero_pages_open();
	struct worker workers[THREADS] = {};
	char *shared = map_pages(&z, PAGES);
	bool own = true, intact = true;

	ksft_set_plan(THREADS + 2 + z.colors);

	for (int t = 0; t < THREADS; t++) {
		workers[t].z = &z;
		workers[t].map = map_pages(&z, PAGES);
		workers[t].expected = calloc(PAGES, 1);
		workers[t].shared = shared;
		workers[t].random = 0x9e3779b97f4a7c15 + t;
		if (pthread_create(&workers[t].thread, NULL, work, &workers[t]))
			ksft_exit_fail_msg("pthread_create failed\n");
	}
	for (int t = 0; t < THREADS; t++) {
		struct worker *w = &workers[t];

		pthread_join(w->thread, NULL);
		ksft_test_result(!w->wrong, "thread %d: %d random operations%s%s\n",
				 t, OPERATIONS, w->wrong ? ": " : "",
				 w->wrong ?: "");
		for (size_t i = 0; i < PAGES; i++)
			intact &= all_equal(w->map + i * z.page,
					    w->expected[i], z.page);
	}
	ksft_test_result(intact, "every page holds what was last done to it\n");

	for (size_t i = 0; i < PAGES; i++) {
		touch(shared + i * z.page);
		own &= is_own_zero_page(&z, shared + i * z.page);
	}
	ksft_test_result(own, "pages that were only read are zero pages\n");
	for (unsigned long color = 0; color < z.colors; color++)
		ksft_test_result(all_zero(zero_page_of_color(&z, color), z.page),
				 "zero page of colour %lu is zero\n", color);
	ksft_finished();
}
