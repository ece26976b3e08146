// SPDX-License-Identifier: GPL-2.0
/* KUnit test of what an instruction says of a write; selftests have the rest. */

#include <kunit/test.h>
#include <linux/module.h>

#include <linux/write_intent.h>

struct encoding {
	const char *text;
	u32 insn;
	enum write_intent intent;
};

/* One of each kind that is told apart, and the loads among them. */
static const struct encoding encodings[] = {
	{ "ldadd w0, w1, [x2]",		0xb8200041, WRITE_INTENT_CERTAIN },
	{ "ldumaxalb w30, w29, [sp]",	0x38fe63fd, WRITE_INTENT_CERTAIN },
	{ "stadd x0, [x1]",		0xf820003f, WRITE_INTENT_CERTAIN },
	{ "swpal x0, x1, [x2]",		0xf8e08041, WRITE_INTENT_CERTAIN },
	{ "cash w0, w1, [x2]",		0x48a07c41, WRITE_INTENT_CERTAIN },
	{ "casal x30, xzr, [sp]",	0xc8feffff, WRITE_INTENT_CERTAIN },
	{ "casp w0, w1, w2, w3, [x4]",	0x08207c82, WRITE_INTENT_CERTAIN },
	{ "caspal x0, x1, x2, x3, [x4]", 0x4860fc82, WRITE_INTENT_CERTAIN },
	{ "ldclrp x0, x1, [x2]",	0x19211040, WRITE_INTENT_CERTAIN },
	{ "swppal x0, x1, [x2]",	0x19e18040, WRITE_INTENT_CERTAIN },
	{ "ldtadd w0, w1, [x2]",	0x19200441, WRITE_INTENT_CERTAIN },
	{ "swptal x0, x1, [x2]",	0x59e08441, WRITE_INTENT_CERTAIN },
	{ "cast x0, x1, [x2]",		0xc9807c41, WRITE_INTENT_CERTAIN },
	{ "caspt x0, x1, x2, x3, [x4]",	0x49807c82, WRITE_INTENT_CERTAIN },
	{ "ldfadd s0, s1, [x2]",	0xbc200041, WRITE_INTENT_CERTAIN },
	{ "stbfminnml h0, [x2]",	0x3c60f05f, WRITE_INTENT_CERTAIN },
	{ "rcwcas x0, x1, [x2]",	0x19200841, WRITE_INTENT_CERTAIN },
	{ "rcwscasp x0, x1, x2, x3, [x2]", 0x59200c42, WRITE_INTENT_CERTAIN },
	{ "rcwclr x0, x1, [x2]",	0x38209041, WRITE_INTENT_CERTAIN },
	{ "rcwsswpp x0, x1, [x2]",	0x5921a040, WRITE_INTENT_CERTAIN },
	{ "ldxr w2, [x0]",		0x885f7c02, WRITE_INTENT_LIKELY },
	{ "ldaxrb w0, [x1]",		0x085ffc20, WRITE_INTENT_LIKELY },
	{ "ldxp x0, x1, [x2]",		0xc87f0440, WRITE_INTENT_LIKELY },
	{ "ldaxp w0, w1, [sp]",		0x887f87e0, WRITE_INTENT_LIKELY },
	{ "ldtxr w0, [x1]",		0x895f7c20, WRITE_INTENT_LIKELY },
	{ "udf #0",			0x00000000, WRITE_INTENT_NONE },
	{ "ldapr x0, [x1]",		0xf8bfc020, WRITE_INTENT_NONE },
	{ "ld64b x0, [x8]",		0xf83fd100, WRITE_INTENT_NONE },
	{ "ldar x0, [x1]",		0xc8dffc20, WRITE_INTENT_NONE },
	{ "stxr w0, x1, [x2]",		0xc8007c41, WRITE_INTENT_NONE },
	{ "ldr x0, [x1]",		0xf9400020, WRITE_INTENT_NONE },
	{ "ldur x0, [x1, #-8]",		0xf85f8020, WRITE_INTENT_NONE },
	{ "ldr x0, [x1, x2]",		0xf8626820, WRITE_INTENT_NONE },
	{ "prfm pstl1strm, [x0, x1]",	0xf8a16811, WRITE_INTENT_NONE },
	{ "stg x0, [x1]",		0xd9200820, WRITE_INTENT_NONE },
	{ "cpyfp [x0]!, [x1]!, x2!",	0x19010440, WRITE_INTENT_NONE },
};

static void encoding_to_text(const struct encoding *e, char *text)
{
	strscpy(text, e->text, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(encoding, encodings, encoding_to_text);

static void every_kind_of_instruction_is_known(struct kunit *test)
{
	const struct encoding *e = test->param_value;

	KUNIT_EXPECT_EQ(test, e->intent, aarch64_insn_write_intent(e->insn));
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
