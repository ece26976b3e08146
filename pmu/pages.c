// SPDX-License-Identifier: GPL-2.0
#include "pages.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "translation.h"

#define FIRST_SLOTS	1024

static struct watch *current(const struct pages *p)
{
	return &p->watch[p->nr_watches - 1];
}

/* The slot of an address: that of its last page, or an empty one. */
static uint32_t *slot_of(const struct pages *p, uint64_t virtual)
{
	/* 2^64 / the golden ratio: Knuth, The Art of Computer Programming, 6.4 */
	size_t i = virtual * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (p->nr_slots - 1);

	while (p->slot[i] && current(p)->page[p->slot[i] - 1].virtual != virtual)
		i = (i + 1) & (p->nr_slots - 1);
	return &p->slot[i];
}

/* At most half of the slots are in use, so that a search ends soon. */
static void grow(struct pages *p)
{
	struct watch *w = current(p);

	p->nr_slots = p->nr_slots ? 2 * p->nr_slots : FIRST_SLOTS;
	free(p->slot);
	p->slot = must_have(calloc(p->nr_slots, sizeof(*p->slot)));
	w->page = must_have(realloc(w->page, p->nr_slots / 2 * sizeof(*w->page)));
	for (size_t i = 0; i < w->nr_pages; i++)
		*slot_of(p, w->page[i].virtual) = i + 1;
}

static struct page *add(struct pages *p, uint64_t virtual, uint64_t physical)
{
	struct watch *w = current(p);
	struct page *page;
	uint32_t *slot;

	if (w->nr_pages == p->nr_slots / 2)
		grow(p);
	slot = slot_of(p, virtual);
	page = &w->page[w->nr_pages];
	*page = (struct page) { .virtual = virtual, .physical = physical, .before = *slot };
	if (*slot)
		page->nr_faults = w->page[*slot - 1].nr_faults;
	*slot = ++w->nr_pages;
	return page;
}

/* The last page at an address, or the last that was at @physical; NULL if there is none. */
static struct page *find(const struct pages *p, uint64_t virtual, const uint64_t *physical)
{
	uint32_t i = *slot_of(p, virtual);

	while (i && physical && current(p)->page[i - 1].physical != *physical)
		i = current(p)->page[i - 1].before;
	return i ? &current(p)->page[i - 1] : NULL;
}

static void note(struct pages *p, uint64_t va, uint64_t pa, bool write, bool faulted)
{
	uint64_t virtual = va >> FT_PAGE_SHIFT, physical = pa >> FT_PAGE_SHIFT;
	struct page *page = find(p, virtual, &physical), *last;
	bool new = !page || (faulted && !write);

	if (new)
		page = add(p, virtual, physical);
	last = find(p, virtual, NULL);
	last->nr_faults += faulted;
	if (new && faulted)
		page->fault = last->nr_faults;
	if (write && page->written == WRITTEN_NEVER)
		page->written = faulted && !new ? WRITTEN_UNSURE : WRITTEN;
}

static void remember(struct pages_cpu *c, uint64_t generation, uint64_t va, bool write)
{
	unsigned int i = (va >> FT_PAGE_SHIFT) % NR_RECENT_PAGES;

	if (c->generation != generation) {
		memset(c->recent, 0xff, sizeof(c->recent));
		c->generation = generation;
	}
	c->recent[i].virtual = va >> FT_PAGE_SHIFT;
	c->recent[i].written = write;
}

static __attribute__((noinline))
void note_access(struct pages *p, unsigned int cpu, qemu_plugin_meminfo_t info,
		 uint64_t va, bool write, bool faulted)
{
	uint64_t last = va + (UINT64_C(1) << qemu_plugin_mem_size_shift(info)) - 1;
	uint64_t pa;

	/* The kernel's own memory, which an atomic of its code may access. */
	if (va >> 55 & 1)
		return;
	pmu_lock(p->pmu);
	if (p->open && translation_lookup(info, va, &pa) == LOOKUP_RAM) {
		note(p, va, pa, write, faulted);
		remember(&p->cpu[cpu], generation(p->pmu), va, write);
		if (va >> FT_PAGE_SHIFT != last >> FT_PAGE_SHIFT &&
		    translation_lookup(info, last, &pa) == LOOKUP_RAM)
			note(p, last, pa, write, false);
	}
	pmu_unlock(p->pmu);
}

/* The guest of the calls below: with an instruction's address, udata is full. */
static struct pages *watching;

void pages_init(struct pages *p, struct pmu *pmu)
{
	p->pmu = pmu;
	watching = p;
}

/* Where an instruction is if it stopped: user code's stay while the kernel handles a fault. */
static struct stop *stopped(struct pages *p, uint64_t pc)
{
	return &p->stopped[pc >> 55 & 1 ? PRIV_KERNEL : PRIV_USER][pc / 4 % NR_STOPPED];
}

/* Before an instruction at @pc that loads or stores; bit 0: it may access more than once. */
static void on_start(unsigned int cpu, void *pc)
{
	struct pages *p = watching;
	struct pages_cpu *c = &p->cpu[cpu];
	uint64_t last = c->running & ~UINT64_C(1), next = (uintptr_t)pc & ~UINT64_C(1);

	if (!p->open)
		return;
	pmu_lock(p->pmu);
	if (!c->accesses || c->running & 1) {
		stopped(p, last)->pc = last;
		stopped(p, last)->accesses = c->accesses;
	}
	c->faulted = UINT_MAX;
	if (stopped(p, next)->pc == next) {
		c->faulted = stopped(p, next)->accesses;
		stopped(p, next)->pc = 0;
	}
	pmu_unlock(p->pmu);
	c->running = (uintptr_t)pc;
	c->accesses = 0;
}

static void on_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t va,
		      void *udata)
{
	struct pages *p = udata;
	struct pages_cpu *c = &p->cpu[cpu];
	unsigned int i = (va >> FT_PAGE_SHIFT) % NR_RECENT_PAGES;
	bool write = qemu_plugin_mem_is_store(info);
	bool faulted = c->accesses++ == c->faulted;
	/* No access is longer than 16 bytes: here it ends in the page. */
	bool whole = (va & (FT_PAGE_SIZE - 1)) <= FT_PAGE_SIZE - 16;

	if (!p->open)
		return;
	if (whole && !faulted && c->recent[i].virtual == va >> FT_PAGE_SHIFT &&
	    (c->recent[i].written || !write) && c->generation == generation(p->pmu))
		return;
	note_access(p, cpu, info, va, write, faulted);
}

/*
 * The kernel accesses user memory with LDTR and STTR, and with atomics where it
 * serves a futex. The rest of its accesses is to its own.
 */
static bool may_be_user(enum insn_kind kind, uint32_t op, enum privilege priv)
{
	return priv == PRIV_USER || kind == INSN_LOAD_STORE || insn_is_atomic(op) ||
		kind == INSN_EXCLUSIVE_STORE || insn_is_unprivileged(op);
}

void pages_watch_access(struct pages *p, struct qemu_plugin_insn *insn,
			enum insn_kind kind, uint32_t op, enum privilege priv)
{
	bool often = kind == INSN_LOAD_STORE || insn_access_limit(op) == 16;
	uint64_t pc = qemu_plugin_insn_vaddr(insn) | often;

	if (!p->pmu->options.pages || !may_be_user(kind, op, priv))
		return;
	qemu_plugin_register_vcpu_insn_exec_cb(insn, on_start, QEMU_PLUGIN_CB_NO_REGS,
					       (void *)(uintptr_t)pc);
	qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS,
					 QEMU_PLUGIN_MEM_RW, p);
}

void pages_zva(struct pages *p, uint64_t va, uint64_t pa)
{
	if (p->open)
		note(p, va, pa, true, false);
}

void pages_zva_unplaced(struct pages *p)
{
	if (p->open)
		current(p)->zva_unplaced++;
}

static void on_unplaced(unsigned int cpu, void *udata)
{
	struct pages *p = udata;

	(void)cpu;
	pmu_lock(p->pmu);
	pages_zva_unplaced(p);
	pmu_unlock(p->pmu);
}

void pages_watch_unplaced(struct pages *p, struct qemu_plugin_insn *insn,
			  enum privilege priv)
{
	if (p->pmu->options.pages && priv == PRIV_USER)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_unplaced,
						       QEMU_PLUGIN_CB_NO_REGS, p);
}

static void on_begin(unsigned int cpu, void *udata)
{
	struct pages *p = udata;

	(void)cpu;
	pmu_lock(p->pmu);
	if (p->open)
		pmu_die(p->pmu, "a watch of pages (hint #0x7c) begins inside another one");
	p->watch = must_have(realloc(p->watch, (p->nr_watches + 1) * sizeof(*p->watch)));
	memset(&p->watch[p->nr_watches++], 0, sizeof(*p->watch));
	p->nr_slots = 0;
	grow(p);
	/* Nothing of an earlier watch. */
	memset(p->stopped, 0, sizeof(p->stopped));
	memset(p->cpu, 0, sizeof(p->cpu));
	for (unsigned int i = 0; i < MAX_CPUS; i++)
		p->cpu[i].generation = UINT64_MAX;
	p->open = true;
	pmu_unlock(p->pmu);
}

static void on_end(unsigned int cpu, void *udata)
{
	struct pages *p = udata;

	(void)cpu;
	pmu_lock(p->pmu);
	if (!p->open)
		pmu_die(p->pmu, "a watch of pages ends (hint #0x7d) that did not begin");
	p->open = false;
	pmu_unlock(p->pmu);
}

void pages_watch_marker(struct pages *p, struct qemu_plugin_insn *insn, enum insn_kind kind)
{
	if (p->pmu->options.pages)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, kind == INSN_WATCH_BEGIN ?
						       on_begin : on_end,
						       QEMU_PLUGIN_CB_NO_REGS, p);
}
