// SPDX-License-Identifier: GPL-2.0
/* KUnit tests of the write-intent decoder and of what is upgraded where. */

#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/module.h>

#include <asm/write_intent.h>

struct encoding {
	const char *text;
	u32 insn;
	enum write_intent intent;
};

/* One of each kind the decoder tells apart, and their undefined neighbours. */
static const struct encoding encodings[] = {
	{ "ldadd w0, w1, [x2]",		0xb8200041, WRITE_INTENT_RMW },
	{ "ldumaxalb w30, w29, [sp]",	0x38fe63fd, WRITE_INTENT_RMW },
	{ "stadd x0, [x1]",		0xf820003f, WRITE_INTENT_RMW },
	{ "swpal x0, x1, [x2]",		0xf8e08041, WRITE_INTENT_RMW },
	{ "cash w0, w1, [x2]",		0x48a07c41, WRITE_INTENT_RMW },
	{ "casal x30, xzr, [sp]",	0xc8feffff, WRITE_INTENT_RMW },
	{ "casp w0, w1, w2, w3, [x4]",	0x08207c82, WRITE_INTENT_RMW },
	{ "caspal x0, x1, x2, x3, [x4]", 0x4860fc82, WRITE_INTENT_RMW },
	{ "ldclrp x0, x1, [x2]",	0x19211040, WRITE_INTENT_RMW },
	{ "swppal x0, x1, [x2]",	0x19e18040, WRITE_INTENT_RMW },
	{ "ldtadd w0, w1, [x2]",	0x19200441, WRITE_INTENT_RMW },
	{ "swptal x0, x1, [x2]",	0x59e08441, WRITE_INTENT_RMW },
	{ "cast x0, x1, [x2]",		0xc9807c41, WRITE_INTENT_RMW },
	{ "caspt x0, x1, x2, x3, [x4]",	0x49807c82, WRITE_INTENT_RMW },
	{ "ldfadd s0, s1, [x2]",	0xbc200041, WRITE_INTENT_RMW },
	{ "stbfminnml h0, [x2]",	0x3c60f05f, WRITE_INTENT_RMW },
	{ "rcwcas x0, x1, [x2]",	0x19200841, WRITE_INTENT_RMW },
	{ "rcwscasp x0, x1, x2, x3, [x2]", 0x59200c42, WRITE_INTENT_RMW },
	{ "rcwclr x0, x1, [x2]",	0x38209041, WRITE_INTENT_RMW },
	{ "rcwsswpp x0, x1, [x2]",	0x5921a040, WRITE_INTENT_RMW },
	{ "ldxr w2, [x0]",		0x885f7c02, WRITE_INTENT_EXCLUSIVE },
	{ "ldaxrb w0, [x1]",		0x085ffc20, WRITE_INTENT_EXCLUSIVE },
	{ "ldxp x0, x1, [x2]",		0xc87f0440, WRITE_INTENT_EXCLUSIVE },
	{ "ldaxp w0, w1, [sp]",		0x887f87e0, WRITE_INTENT_EXCLUSIVE },
	{ "ldtxr w0, [x1]",		0x895f7c20, WRITE_INTENT_EXCLUSIVE },
	{ "udf #0",			0x00000000, WRITE_INTENT_NONE },
	{ "ldapr x0, [x1]",		0xf8bfc020, WRITE_INTENT_NONE },
	{ "ld64b x0, [x8]",		0xf83fd100, WRITE_INTENT_NONE },
	{ "st64b x0, [x8]",		0xf83f9100, WRITE_INTENT_NONE },
	{ "st64bv x2, x0, [x8]",	0xf822b100, WRITE_INTENT_NONE },
	{ "st64bv0 x2, x0, [x8]",	0xf822a100, WRITE_INTENT_NONE },
	{ "ldar x0, [x1]",		0xc8dffc20, WRITE_INTENT_NONE },
	{ "stxr w0, x1, [x2]",		0xc8007c41, WRITE_INTENT_NONE },
	{ "ldr x0, [x1]",		0xf9400020, WRITE_INTENT_NONE },
	{ "ldur x0, [x1, #-8]",		0xf85f8020, WRITE_INTENT_NONE },
	{ "ldr x0, [x1, x2]",		0xf8626820, WRITE_INTENT_NONE },
	{ "prfm pstl1strm, [x0, x1]",	0xf8a16811, WRITE_INTENT_NONE },
	{ "stg x0, [x1]",		0xd9200820, WRITE_INTENT_NONE },
	{ "cpyfp [x0]!, [x1]!, x2!",	0x19010440, WRITE_INTENT_NONE },
	{ "casp with odd Rs",		0x08217c82, WRITE_INTENT_NONE },
	{ "swpp with Rt 31",		0x1921805f, WRITE_INTENT_NONE },
	{ "stfadd with A",		0xbca0805f, WRITE_INTENT_NONE },
	{ "cas with Rt2 0",		0xc8a00041, WRITE_INTENT_NONE },
};

static void encoding_to_text(const struct encoding *e, char *text)
{
	strscpy(text, e->text, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(encoding, encodings, encoding_to_text);

static void every_kind_of_instruction_is_known(struct kunit *test)
{
	const struct encoding *e = test->param_value;

	KUNIT_EXPECT_EQ(test, e->intent, a64_write_intent(e->insn));
}

struct place {
	const char *text;
	vm_flags_t has;		/* vma->vm_flags */
	vm_flags_t needs;	/* the permissions of which one will do */
	unsigned int mm_flags;
	bool possible;
};

#define ANY_READ	(VM_READ | VM_WRITE | VM_EXEC)
#define USER		(FAULT_FLAG_DEFAULT | FAULT_FLAG_USER)

static const struct place places[] = {
	{ "read, rw", VM_READ | VM_WRITE, ANY_READ, USER, true },
	{ "read, rwx", ANY_READ, ANY_READ, USER, true },
	{ "read, rw, shared", VM_READ | VM_WRITE | VM_SHARED, ANY_READ, USER,
	  true },
	{ "read, r", VM_READ, ANY_READ, USER, false },
	{ "read, w", VM_WRITE, ANY_READ, USER, false },
	{ "read, x", VM_EXEC, ANY_READ, USER, false },
	{ "read, rx", VM_READ | VM_EXEC, ANY_READ, USER, false },
	{ "read, none", 0, ANY_READ, USER, false },
	{ "read by the kernel, rw", VM_READ | VM_WRITE, ANY_READ,
	  FAULT_FLAG_DEFAULT, false },
	{ "write, rw", VM_READ | VM_WRITE, VM_WRITE, USER | FAULT_FLAG_WRITE,
	  false },
	{ "instruction, rwx", ANY_READ, VM_EXEC, USER | FAULT_FLAG_INSTRUCTION,
	  false },
	{ "retried read, rw", VM_READ | VM_WRITE, ANY_READ,
	  USER | FAULT_FLAG_TRIED, true },
};

static void place_to_text(const struct place *p, char *text)
{
	strscpy(text, p->text, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(place, places, place_to_text);

/* A VMA of no mm but this task's, so that protection keys have no say. */
static struct vm_area_struct *new_vma(struct kunit *test, vm_flags_t flags)
{
	struct vm_area_struct *vma = kunit_kzalloc(test, sizeof(*vma), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, vma);
	vma->vm_mm = current->mm;
	vm_flags_init(vma, flags);
	return vma;
}

static void only_user_reads_of_writable_memory_are_looked_at(struct kunit *test)
{
	const struct place *p = test->param_value;

	KUNIT_EXPECT_EQ(test, p->possible,
			write_intent_possible(new_vma(test, p->has), p->needs,
					      p->mm_flags));
}

static void exclusives_are_for_private_anonymous_memory(struct kunit *test)
{
	static const struct vm_operations_struct file_ops;
	struct vm_area_struct *vma = new_vma(test, VM_READ | VM_WRITE);
	const bool enabled = static_key_enabled(&write_intent_exclusive);

	KUNIT_EXPECT_EQ(test, write_intent_exclusive_allowed(vma), enabled);
	vma->vm_ops = &file_ops;
	KUNIT_EXPECT_FALSE(test, write_intent_exclusive_allowed(vma));
}

static void exclusives_are_not_for_memory_with_a_monitor(struct kunit *test)
{
#ifdef CONFIG_USERFAULTFD
	struct vm_area_struct *vma = new_vma(test, VM_READ | VM_WRITE);

	vma->vm_userfaultfd_ctx.ctx = (struct userfaultfd_ctx *)vma;
	KUNIT_EXPECT_FALSE(test, write_intent_exclusive_allowed(vma));
#else
	kunit_skip(test, "no userfaultfd");
#endif
}

/* User text: one page, of which the kernel may read what EL0 may. */
static unsigned long map_text(struct kunit *test, unsigned long prot)
{
	unsigned long text = kunit_vm_mmap(test, NULL, 0, PAGE_SIZE, prot,
					   MAP_ANONYMOUS | MAP_PRIVATE, 0);

	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(text));
	return text;
}

static void the_instruction_is_read(struct kunit *test)
{
	unsigned long text = map_text(test, PROT_READ | PROT_WRITE);
	__le32 ldxr = cpu_to_le32(0x885f7c02);

	KUNIT_ASSERT_EQ(test, 0, put_user(ldxr, (__le32 __user *)text));
	KUNIT_EXPECT_EQ(test, 0x885f7c02, write_intent_fetch(text));
}

static void text_that_is_not_there_reads_as_no_instruction(struct kunit *test)
{
	/* Never touched: to serve this would take the lock the caller holds. */
	unsigned long text = map_text(test, PROT_READ | PROT_WRITE);

	KUNIT_EXPECT_EQ(test, 0, write_intent_fetch(text));
}

static void unreadable_text_is_not_read_again(struct kunit *test)
{
	unsigned long text = map_text(test, PROT_NONE);
	struct vm_area_struct *vma = new_vma(test, VM_READ | VM_WRITE);
	struct pt_regs regs = { .pc = text };
	struct pt_regs elsewhere = { .pc = text + SZ_2M };
	struct mm_struct *mm = current->mm;
	u32 insn = ~0;

	KUNIT_ASSERT_EQ(test, 0, mm->context.flags);
	KUNIT_EXPECT_EQ(test, WRITE_INTENT_NONE,
			write_intent_of_fault(vma, &regs, &insn));
	KUNIT_EXPECT_EQ(test, 0, insn);
	KUNIT_EXPECT_FALSE(test, write_intent_text_readable(mm, &regs));
	KUNIT_EXPECT_TRUE(test, write_intent_text_readable(mm, &elsewhere));

	insn = ~0;
	KUNIT_EXPECT_EQ(test, WRITE_INTENT_NONE,
			write_intent_of_fault(vma, &regs, &insn));
	KUNIT_EXPECT_EQ(test, ~0, insn);

	/* For a second. */
	mm->context.unreadable_text_since -= HZ + 1;
	KUNIT_EXPECT_TRUE(test, write_intent_text_readable(mm, &regs));
	KUNIT_EXPECT_EQ(test, 0, mm->context.flags);
}

static void aarch32_tasks_are_left_alone(struct kunit *test)
{
	unsigned long text = map_text(test, PROT_READ | PROT_WRITE);
	struct vm_area_struct *vma = new_vma(test, VM_READ | VM_WRITE);
	struct pt_regs regs = { .pc = text };
	struct mm_struct *mm = current->mm;
	u32 insn;

	KUNIT_ASSERT_EQ(test, 0, put_user(cpu_to_le32(0xb8200041),
					  (__le32 __user *)text));
	mm->context.flags |= MMCF_AARCH32;
	KUNIT_EXPECT_EQ(test, WRITE_INTENT_NONE,
			write_intent_of_fault(vma, &regs, &insn));
	mm->context.flags &= ~MMCF_AARCH32;
	KUNIT_EXPECT_EQ(test, WRITE_INTENT_RMW,
			write_intent_of_fault(vma, &regs, &insn));
	raw_cpu_dec(write_intent_upgraded[WRITE_INTENT_RMW]);
}

static struct kunit_case write_intent_cases[] = {
	KUNIT_CASE_PARAM(every_kind_of_instruction_is_known, encoding_gen_params),
	KUNIT_CASE_PARAM(only_user_reads_of_writable_memory_are_looked_at,
			 place_gen_params),
	KUNIT_CASE(exclusives_are_for_private_anonymous_memory),
	KUNIT_CASE(exclusives_are_not_for_memory_with_a_monitor),
	KUNIT_CASE(the_instruction_is_read),
	KUNIT_CASE(text_that_is_not_there_reads_as_no_instruction),
	KUNIT_CASE(unreadable_text_is_not_read_again),
	KUNIT_CASE(aarch32_tasks_are_left_alone),
	{}
};

static struct kunit_suite write_intent_suite = {
	.name = "write_intent",
	.test_cases = write_intent_cases,
};

kunit_test_suite(write_intent_suite);

MODULE_DESCRIPTION("KUnit tests of write-intent faults");
MODULE_LICENSE("GPL");
