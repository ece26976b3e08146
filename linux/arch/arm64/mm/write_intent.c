// SPDX-License-Identifier: GPL-2.0
/* The switch of write-intent faults. What each fault passes is in the header. */

#include <linux/init.h>
#include <linux/mutex.h>
#include <linux/sysctl.h>

#include <asm/write_intent.h>

#define CREATE_TRACE_POINTS
#include "write_intent.h"

DEFINE_STATIC_KEY_TRUE(write_intent_rmw);
DEFINE_STATIC_KEY_FALSE(write_intent_exclusive);

/* 0: off, 1: atomic read-modify-writes, 2: load-exclusives, too */
static int write_intent_mode = 1;

void write_intent_trace(const struct vm_fault *vmf, u32 insn)
{
	trace_write_intent(vmf->real_address, instruction_pointer(current_pt_regs()), insn);
}

static int write_intent_sysctl(const struct ctl_table *table, int write,
			       void *buffer, size_t *lenp, loff_t *ppos)
{
	static DEFINE_MUTEX(lock);
	int ret;

	mutex_lock(&lock);
	ret = proc_dointvec_minmax(table, write, buffer, lenp, ppos);
	(write_intent_mode >= 1 ? static_key_enable :
				  static_key_disable)(&write_intent_rmw.key);
	(write_intent_mode >= 2 ? static_key_enable :
				  static_key_disable)(&write_intent_exclusive.key);
	mutex_unlock(&lock);

	return ret;
}

static const struct ctl_table write_intent_table[] = {
	{
		.procname	= "write_intent",
		.data		= &write_intent_mode,
		.maxlen		= sizeof(write_intent_mode),
		.mode		= 0644,
		.proc_handler	= write_intent_sysctl,
		.extra1		= SYSCTL_ZERO,
		.extra2		= SYSCTL_TWO,
	},
};

static int __init write_intent_init(void)
{
	register_sysctl_init("vm", write_intent_table);
	return 0;
}
subsys_initcall(write_intent_init);
