// SPDX-License-Identifier: GPL-2.0
/* Part of write_intent.c: which instructions write; selftests have the rest. */
#include <kunit/test.h>

#include <linux/module.h>

struct encoding {
	const char *text;
	u32 insn;
	bool writes;
};

/* One of each kind that is told apart, and the loads among them. */
static const struct encoding encodings[] = {
	{ "ldadd w0, w1, [x2]",		0xb8200041, true },
	{ "ldumaxalb w30, w29, [sp]",	0x38fe63fd, true },
	{ "stadd x0, [x1]",		0xf820003f, true },
	{ "swpal x0, x1, [x2]",		0xf8e08041, true },
	{ "cash w0, w1, [x2]",		0x48a07c41, true },
	{ "casal x30, xzr, [sp]",	0xc8feffff, true },
	{ "casp w0, w1, w2, w3, [x4]",	0x08207c82, true },
	{ "caspal x0, x1, x2, x3, [x4]", 0x4860fc82, true },
	{ "ldclrp x0, x1, [x2]",	0x19211040, true },
	{ "swppal x0, x1, [x2]",	0x19e18040, true },
	{ "ldtadd w0, w1, [x2]",	0x19200441, true },
	{ "swptal x0, x1, [x2]",	0x59e08441, true },
	{ "cast x0, x1, [x2]",		0xc9807c41, true },
	{ "caspt x0, x1, x2, x3, [x4]",	0x49807c82, true },
	{ "ldfadd s0, s1, [x2]",	0xbc200041, true },
	{ "stbfminnml h0, [x2]",	0x3c60f05f, true },
	{ "rcwcas x0, x1, [x2]",	0x19200841, true },
	{ "rcwscasp x0, x1, x2, x3, [x2]", 0x59200c42, true },
	{ "rcwclr x0, x1, [x2]",	0x38209041, true },
	{ "rcwsswpp x0, x1, [x2]",	0x5921a040, true },
	{ "ldxr w2, [x0]",		0x885f7c02, false },
	{ "ldaxrb w0, [x1]",		0x085ffc20, false },
	{ "ldxp x0, x1, [x2]",		0xc87f0440, false },
	{ "ldaxp w0, w1, [sp]",		0x887f87e0, false },
	{ "ldtxr w0, [x1]",		0x895f7c20, false },
	{ "udf #0",			0x00000000, false },
	{ "ldapr x0, [x1]",		0xf8bfc020, false },
	{ "ld64b x0, [x8]",		0xf83fd100, false },
	{ "ldar x0, [x1]",		0xc8dffc20, false },
	{ "stxr w0, x1, [x2]",		0xc8007c41, false },
	{ "ldr x0, [x1]",		0xf9400020, false },
	{ "ldur x0, [x1, #-8]",		0xf85f8020, false },
	{ "ldr x0, [x1, x2]",		0xf8626820, false },
	{ "prfm pstl1strm, [x0, x1]",	0xf8a16811, false },
	{ "stg x0, [x1]",		0xd9200820, false },
	{ "cpyfp [x0]!, [x1]!, x2!",	0x19010440, false },
};

static void encoding_to_text(const struct encoding *e, char *text)
{
	strscpy(text, e->text, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(encoding, encodings, encoding_to_text);

static void every_kind_of_instruction_is_known(struct kunit *test)
{
	const struct encoding *e = test->param_value;

	KUNIT_EXPECT_EQ(test, e->writes, aarch64_insn_writes_what_it_reads(e->insn));
}

static struct kunit_case write_intent_cases[] = {
	KUNIT_CASE_PARAM(every_kind_of_instruction_is_known, encoding_gen_params),
	{}
};

static struct kunit_suite write_intent_suite = {
	.name = "write_intent",
	.test_cases = write_intent_cases,
};

kunit_test_suite(write_intent_suite);

MODULE_DESCRIPTION("KUnit test of the write-intent decoder");
MODULE_LICENSE("GPL");
