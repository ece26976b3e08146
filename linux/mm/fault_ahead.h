/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_FAULT_AHEAD_H
#define _MM_FAULT_AHEAD_H

#include <linux/mm.h>
#include <linux/sched.h>

/* A zero page that a read has mapped. KSM accounts for its own, which are dirty. */
static inline bool pte_is_clean_zero(pte_t pte)
{
	return pte_present(pte) && pte_special(pte) && !pte_dirty(pte) &&
	       is_zero_pfn(pte_pfn(pte));
}

#ifdef CONFIG_FAULT_AHEAD

DECLARE_STATIC_KEY_FALSE(fault_ahead_enabled);
struct folio *__fault_ahead_folio(struct vm_fault *vmf, unsigned long *stream);
void __fault_ahead_unmap_zeros(struct vm_fault *vmf, unsigned long stream);

/*
 * A stream is one word: the address behind the page where it ended; in the
 * offset, the order of its last folio. Did it end on the page at @addr, or on the
 * page below or above it?
 */
static __always_inline bool ended_near(unsigned long stream, unsigned long addr)
{
	return stream - addr < 3 * PAGE_SIZE;
}

/* The stream that ended near @addr. If none did, one begins there, for the oldest: NULL. */
static __always_inline unsigned long *find_stream(struct fault_ahead *ahead, unsigned long addr)
{
	unsigned long *streams = ahead->streams;

	/* No loop, and no call, because most faults come here in vain */
	if (ended_near(streams[0], addr))
		return &streams[0];
	if (ended_near(streams[1], addr))
		return &streams[1];
	if (ended_near(streams[2], addr))
		return &streams[2];

	streams[2] = streams[1];
	streams[1] = streams[0];
	streams[0] = addr + PAGE_SIZE;

	return NULL;
}

/*
 * The folio for a write fault on a missing page which continues a stream: it has
 * the page of the fault at its beginning or end. NULL: one page, as ever.
 */
static inline struct folio *fault_ahead_folio(struct vm_fault *vmf)
{
	unsigned long *stream;

	if (!static_branch_unlikely(&fault_ahead_enabled))
		return NULL;
	stream = find_stream(&current->fault_ahead, vmf->address);

	return stream ? __fault_ahead_folio(vmf, stream) : NULL;
}

/* A write fault on a zero page becomes that of a missing page, if it continues a stream */
static inline void fault_ahead_unmap_zero(struct vm_fault *vmf)
{
	unsigned long *stream;

	if (!static_branch_unlikely(&fault_ahead_enabled) || !(vmf->flags & FAULT_FLAG_WRITE) ||
	    !pte_is_clean_zero(vmf->orig_pte))
		return;
	stream = find_stream(&current->fault_ahead, vmf->address);
	if (stream)
		__fault_ahead_unmap_zeros(vmf, *stream);
}

#else
static inline struct folio *fault_ahead_folio(struct vm_fault *vmf) { return NULL; }
static inline void fault_ahead_unmap_zero(struct vm_fault *vmf) { }
#endif

#endif /* _MM_FAULT_AHEAD_H */
