/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fault-ahead: read-ahead's ramp for anonymous memory
 *
 * A thread that writes fresh memory page after page takes a page fault for each. Where
 * such a stream of first writes goes on is a guess, and the evidence for it is how long
 * it has gone on. So a fault may get as many pages as its stream has had, its own
 * included: 1, 1, 1, 4, 4, 8, 16... as far as folios of these sizes are aligned and
 * allowed ("inorder" in hugepages-<size>kB/enabled). A folio's pages count as written
 * when the page behind it is. So where all are, a stream that stops leaves at most about
 * as many untouched pages behind as it has touched. Runs of up to three pages leave none.
 *
 * The state is three words of the task. They are hints: what other threads, mremap(),
 * fork() or exec() make of the memory behind them costs a folio at most.
 */
#ifndef _MM_FAULT_AHEAD_H
#define _MM_FAULT_AHEAD_H

#include <linux/mm.h>
#include <linux/sched.h>

/* A stream: the address behind the page where it ended, and how many pages it has had */
#define STREAM_END(stream)	((stream) & PAGE_MASK)
#define STREAM_PAGES(stream)	offset_in_page(stream)
/* No folio is larger. */
#define STREAM_PAGES_MAX	((1UL << HPAGE_PMD_ORDER) - 1)

/* Did @stream end on the page at @addr, or on the one below or above it? */
static __always_inline bool stream_ended_near(unsigned long stream, unsigned long addr)
{
	return stream - addr < 3 * PAGE_SIZE;
}

/*
 * Where a stream begins that continues none. Never the first place, which is for the one
 * that was continued last: it may take few faults, and many others fall between two of
 * them. And not always the same, or three streams that begin at once would never meet
 * themselves again.
 */
static __always_inline unsigned long *place_of_new_stream(unsigned long *streams,
							  unsigned long addr)
{
	return &streams[1 + (addr >> PAGE_SHIFT & 1)];
}

/*
 * The page at @addr is written for the first time. It continues the stream that ended
 * next to it, upwards or downwards, or begins one.
 *
 * Return: the orders of the folios that the page may get, 0 where it continues nothing.
 */
static __always_inline unsigned long continue_stream(unsigned long *streams, unsigned long addr)
{
	unsigned long stream = streams[0], pages;

	/* No loop, and no call, because most faults continue nothing */
	if (!stream_ended_near(stream, addr)) {
		unsigned long *place = &streams[1];

		if (!stream_ended_near(*place, addr) && !stream_ended_near(*++place, addr)) {
			*place_of_new_stream(streams, addr) = addr + PAGE_SIZE + 1;
			return 0;
		}
		swap(streams[0], *place);
		stream = streams[0];
	}

	/* A page for the second time has been given back: that is not in order. */
	if (STREAM_END(stream) == addr + PAGE_SIZE)
		return 0;
	pages = min(STREAM_PAGES(stream) + 1, STREAM_PAGES_MAX);
	streams[0] = addr + PAGE_SIZE + pages;

	return GENMASK(ilog2(pages), 0);
}

/*
 * The page at @addr, which continue_stream() took last, got the @nr pages from @start on.
 * Its stream goes on behind them: where @addr is in their upper half, below.
 */
static inline void stream_got_folio(unsigned long *streams, unsigned long addr,
				    unsigned long start, unsigned long nr)
{
	unsigned long *stream = STREAM_END(streams[0]) == addr + PAGE_SIZE ?
				streams : place_of_new_stream(streams, addr);
	const unsigned long end = start + nr * PAGE_SIZE;
	const unsigned long pages = min(STREAM_PAGES(*stream) + nr - 1, STREAM_PAGES_MAX);

	*stream = (addr - start < end - addr ? end : start + PAGE_SIZE) + pages;
}

#endif /* _MM_FAULT_AHEAD_H */
