// SPDX-License-Identifier: GPL-2.0
/*
 * Fault-ahead: first writes to anonymous memory that come in order take one
 * fault for many pages. See Documentation/admin-guide/mm/fault_ahead.rst.
 */

#include <linux/memcontrol.h>
#include <linux/mmu_notifier.h>
#include <linux/sysfs.h>
#include <linux/userfaultfd_k.h>
#include "fault_ahead.h"
#include "internal.h"

#define CREATE_TRACE_POINTS
#include <trace/events/fault_ahead.h>

/*
 * What a write earns that continues a stream, in pages. Nothing else earns, and
 * a folio costs the pages that nobody asked for. So a thread is never given more
 * than this number of pages in vain for each page that it writes in order.
 */
#define PAGES_EARNED	4UL

/* A thread saves so many at most: what it earned long ago does not all come at once */
#define MOST_CREDIT	255UL

/* A large folio of anonymous memory has at least four pages */
#define LEAST_ORDER	2

#define STREAM_END(stream)	((stream) & PAGE_MASK)
#define STREAM_ORDER(stream)	((int)offset_in_page(stream))

DEFINE_STATIC_KEY_FALSE(fault_ahead_enabled);
static int largest_order;

/*
 * The order of the folio that @credit pays for by a write at @addr which continues
 * @stream, and that fits there: it begins at @addr, or ends with that page if the
 * stream goes down.
 */
static int affordable_order(unsigned long stream, unsigned long credit, unsigned long addr,
			    int largest)
{
	const unsigned long next = addr + PAGE_SIZE, end = STREAM_END(stream);
	const int order = __ffs(addr == end ? addr : next) - PAGE_SHIFT;

	/* A page for the second time was given back meanwhile. That is not in order. */
	if (next == end)
		return 0;

	return min3(order, ilog2(credit + PAGES_EARNED + 1), largest);
}

/* The write at @addr continued @stream, and got a folio of @order */
static void go_on(struct fault_ahead *ahead, unsigned long *stream, unsigned long addr, int order)
{
	const unsigned long next = addr + PAGE_SIZE, others = (1UL << order) - 1;
	const unsigned long end = STREAM_END(*stream);

	if (next == end)
		return;
	ahead->credit = min(ahead->credit + PAGES_EARNED, MOST_CREDIT) - others;
	*stream = (addr == end ? next + others * PAGE_SIZE : next - others * PAGE_SIZE) + order;
}

/* Is there nothing behind @nr entries, but for zero pages if @zeros? */
static bool range_is_untouched(pte_t *pte, int nr, bool zeros)
{
	for (; nr; nr--, pte++) {
		pte_t entry = ptep_get_lockless(pte);

		if (!pte_none(entry) && !(zeros && pte_is_clean_zero(entry)))
			return false;
	}

	return true;
}

/* May memory that nobody asked for be mapped where @vmf is? */
static bool may_map_ahead(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;

	return vma->vm_mm == current->mm && !(current->flags & PF_KTHREAD) &&
	       vma_is_anonymous(vma) && !vma_is_temporary_stack(vma) &&
	       !userfaultfd_armed(vma) && !vma_thp_disabled(vma, vma->vm_flags, false);
}

/*
 * The order of the largest folio up to @order that fits at @vmf, whose entry is @pte:
 * inside the mapping, and nothing behind its entries. 0 if none does.
 */
static int untouched_order(struct vm_fault *vmf, pte_t *pte, int order, bool zeros)
{
	for (; order >= LEAST_ORDER; order--) {
		const int nr = 1 << order, index = (vmf->address >> PAGE_SHIFT) & (nr - 1);

		if (thp_vma_suitable_order(vmf->vma, vmf->address, order) &&
		    range_is_untouched(pte - index, nr, zeros))
			return order;
	}

	return 0;
}

/* Not beyond memory.high either: the thread would have to reclaim on its way back */
static bool charge_lightly(struct folio *folio, struct mm_struct *mm)
{
#ifdef CONFIG_MEMCG
	const unsigned int over_high = current->memcg_nr_pages_over_high;

	if (mem_cgroup_charge(folio, mm, GFP_TRANSHUGE_LIGHT))
		return false;
	if (current->memcg_nr_pages_over_high != over_high) {
		current->memcg_nr_pages_over_high = over_high;
		return false;
	}
#endif
	return true;
}

/* Nobody waits for what nobody asked for: no reclaim and no compaction */
static struct folio *alloc_folio(struct vm_fault *vmf, int order)
{
	struct vm_area_struct *vma = vmf->vma;
	struct folio *folio = vma_alloc_folio(GFP_TRANSHUGE_LIGHT, order, vma,
					      ALIGN_DOWN(vmf->address, PAGE_SIZE << order));

	if (!folio)
		return NULL;
	if (!charge_lightly(folio, vma->vm_mm) || folio_memcg_alloc_deferred(folio)) {
		folio_put(folio);
		return NULL;
	}
	if (user_alloc_needs_zeroing())
		folio_zero_user(folio, vmf->address);

	return folio;
}

struct folio *__fault_ahead_folio(struct vm_fault *vmf, unsigned long *stream)
{
	struct fault_ahead *ahead = &current->fault_ahead;
	int order = affordable_order(*stream, ahead->credit, vmf->address,
				     READ_ONCE(largest_order));
	struct folio *folio = NULL;
	pte_t *pte = NULL;

	if (!may_map_ahead(vmf))
		return NULL;
	if (STREAM_ORDER(*stream))
		count_vm_events(FAULT_AHEAD_REACHED, (1 << STREAM_ORDER(*stream)) - 1);
	if (order >= LEAST_ORDER)
		pte = pte_offset_map(vmf->pmd, vmf->address);
	if (pte) {
		order = untouched_order(vmf, pte, order, false);
		pte_unmap(pte);
		if (order)
			folio = alloc_folio(vmf, order);
	}
	if (folio) {
		count_vm_events(FAULT_AHEAD, (1 << order) - 1);
		trace_fault_ahead(vmf->address, order);
	}
	go_on(ahead, stream, vmf->address, folio ? order : 0);

	return folio;
}

/*
 * A write to a zero page continues @stream: unmap it, and those that are in the way of
 * what the stream gets.
 */
void __fault_ahead_unmap_zeros(struct vm_fault *vmf, unsigned long stream)
{
	int order = affordable_order(stream, current->fault_ahead.credit, vmf->address,
				     READ_ONCE(largest_order));
	unsigned long addr = ALIGN_DOWN(vmf->address, PAGE_SIZE << order);
	struct vm_area_struct *vma = vmf->vma;
	struct mmu_notifier_range range;
	pte_t *pte, *entry;
	int nr;

	if (!may_map_ahead(vmf))
		return;

	/* Notifiers sleep. If an entry changes meanwhile, the write faults again. */
	pte_unmap(vmf->pte);
	vmf->pte = NULL;
	vmf->flags &= ~FAULT_FLAG_ORIG_PTE_VALID;
	mmu_notifier_range_init(&range, MMU_NOTIFY_CLEAR, 0, vma->vm_mm, addr,
				addr + (PAGE_SIZE << order));
	mmu_notifier_invalidate_range_start(&range);
	pte = pte_offset_map_lock(vma->vm_mm, vmf->pmd, vmf->address, &vmf->ptl);
	if (pte) {
		nr = 1 << untouched_order(vmf, pte, order, true);
		addr = ALIGN_DOWN(vmf->address, nr * PAGE_SIZE);
		entry = pte - ((vmf->address - addr) >> PAGE_SHIFT);
		for (; nr; nr--, entry++, addr += PAGE_SIZE) {
			if (!pte_is_clean_zero(ptep_get(entry)))
				continue;
			flush_cache_page(vma, addr, pte_pfn(ptep_get(entry)));
			ptep_clear_flush(vma, addr, entry);
		}
		pte_unmap_unlock(pte, vmf->ptl);
	}
	mmu_notifier_invalidate_range_end(&range);
}

static int set_largest(unsigned long kib)
{
	const unsigned long pages = kib >> (PAGE_SHIFT - 10);

	if (kib && (!is_power_of_2(kib) || pages < 1 << LEAST_ORDER || pages >= HPAGE_PMD_NR))
		return -EINVAL;
	WRITE_ONCE(largest_order, kib ? ilog2(pages) : 0);
	(kib ? static_key_enable : static_key_disable)(&fault_ahead_enabled.key);

	return 0;
}

static ssize_t fault_ahead_kb_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	const int order = READ_ONCE(largest_order);

	return sysfs_emit(buf, "%lu\n", order ? PAGE_SIZE << order >> 10 : 0);
}

static ssize_t fault_ahead_kb_store(struct kobject *kobj, struct kobj_attribute *attr,
				    const char *buf, size_t count)
{
	unsigned long kib;
	int err = kstrtoul(buf, 0, &kib) ?: set_largest(kib);

	return err ?: count;
}

static struct kobj_attribute fault_ahead_kb = __ATTR_RW(fault_ahead_kb);

static int __init fault_ahead_init(void)
{
	return sysfs_create_file(mm_kobj, &fault_ahead_kb.attr);
}
subsys_initcall(fault_ahead_init);

static int __init fault_ahead_setup(char *text)
{
	unsigned long kib;

	return !kstrtoul(text, 0, &kib) && !set_largest(kib);
}
__setup("fault_ahead_kb=", fault_ahead_setup);
