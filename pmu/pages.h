/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which pages of user memory were accessed, and which of them were ever written,
 * between the marker that begins a watch and the one that ends it.
 *
 * A page is a physical page at a virtual address, from one fault to the next that
 * finds the address empty. So a page that is freed, and allocated again for the
 * same address, is another page. A fault is an access that QEMU began and did not
 * complete; its address is that of the instruction's next run.
 */
#ifndef FT_PAGES_H
#define FT_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode.h"
#include "plugin_api.h"
#include "pmu.h"

#define PHYSICAL_UNKNOWN	UINT64_MAX

enum written {
	WRITTEN_NEVER,
	WRITTEN,
	/*
	 * The first write faulted: because of a fork, or because the physical page
	 * was freed and then allocated for this write.
	 */
	WRITTEN_UNSURE,
};

struct page {
	uint64_t virtual, physical;	/* numbers of pages */
	uint32_t before;		/* the one before at its address plus 1, or 0 */
	/* Which of the faults at this address began it, from 1; 0: none, it was there. */
	uint32_t fault;
	uint32_t nr_faults;		/* at this address so far, in its last page */
	enum written written;
};

struct watch {
	struct page *page;		/* in the order of their first accesses */
	size_t nr_pages;
	/* DC ZVA of user code whose pages are not known: any page may be written. */
	uint64_t zva_unplaced;
};

#define NR_RECENT_PAGES	256
#define NR_STOPPED	1024	/* of each privilege */

struct pages_cpu {
	/* The instruction that runs: its address, and in bit 0 whether it may access often. */
	uint64_t running;
	unsigned int accesses;		/* that it made so far */
	unsigned int faulted;		/* the number of the one that may have faulted before */
	/* Pages that need no more than a look here. */
	uint64_t generation;
	struct {
		uint64_t virtual;
		bool written;
	} recent[NR_RECENT_PAGES];
};

struct pages {
	struct pmu *pmu;
	bool open;
	struct watch *watch;		/* the last one may be open */
	unsigned int nr_watches;
	/* Of the open watch: the last page at an address plus 1, or 0. */
	uint32_t *slot;
	size_t nr_slots;		/* a power of two */
	/*
	 * Instructions that did not run again since they stopped, by their addresses. One
	 * that ran to its end never makes the access whose number is here.
	 */
	struct stop {
		uint64_t pc;
		unsigned int accesses;
	} stopped[NR_PRIVS][NR_STOPPED];
	struct pages_cpu cpu[MAX_CPUS];
};

/* Call this first: sets the guest whose instructions are watched. */
void pages_init(struct pages *p, struct pmu *pmu);

/* While a block is translated: @insn is a marker. */
void pages_watch_marker(struct pages *p, struct qemu_plugin_insn *insn, enum insn_kind kind);

/* Likewise: @insn, of @kind, is a load or store. */
void pages_watch_access(struct pages *p, struct qemu_plugin_insn *insn,
			enum insn_kind kind, uint32_t op, enum privilege priv);

/* Likewise: @insn is a DC ZVA whose address cannot be known. */
void pages_watch_unplaced(struct pages *p, struct qemu_plugin_insn *insn,
			  enum privilege priv);

/*
 * A DC ZVA of user code wrote to @va, which lies at @pa, or is PHYSICAL_UNKNOWN; or to
 * a place not known.
 */
void pages_zva(struct pages *p, uint64_t va, uint64_t pa);
void pages_zva_unplaced(struct pages *p);

#endif
