// SPDX-License-Identifier: GPL-2.0
/* vm.write_intent: who is asked whether a write follows a read fault */

#include <linux/init.h>
#include <linux/mutex.h>
#include <linux/sysctl.h>
#include <linux/write_intent.h>

#define CREATE_TRACE_POINTS
#include <trace/events/write_intent.h>

DEFINE_STATIC_KEY_FALSE(write_intent_rmw);
DEFINE_STATIC_KEY_FALSE(write_intent_exclusive);

void do_trace_write_intent(const struct vm_fault *vmf, enum write_intent intent)
{
	trace_write_intent(vmf, intent);
}

enum { OFF, RMW, EXCLUSIVE };
static const char * const write_intent_modes[] = { "off", "rmw", "exclusive" };
static int write_intent_mode;

static void write_intent_set(int mode)
{
	write_intent_mode = mode;
	(mode != OFF ? static_key_enable : static_key_disable)(&write_intent_rmw.key);
	(mode == EXCLUSIVE ? static_key_enable : static_key_disable)(&write_intent_exclusive.key);
}

static int write_intent_sysctl(const struct ctl_table *table, int write,
			       void *buffer, size_t *lenp, loff_t *ppos)
{
	static DEFINE_MUTEX(lock);
	char name[16];
	const struct ctl_table word = { .data = name, .maxlen = sizeof(name) };
	int ret;

	mutex_lock(&lock);
	strscpy(name, write_intent_modes[write_intent_mode]);
	ret = proc_dostring(&word, write, buffer, lenp, ppos);
	if (!ret && write) {
		ret = match_string(write_intent_modes, ARRAY_SIZE(write_intent_modes), name);
		if (ret >= 0)
			write_intent_set(ret);
	}
	mutex_unlock(&lock);

	return min(ret, 0);
}

static const struct ctl_table write_intent_table[] = {
	{
		.procname	= "write_intent",
		.mode		= 0644,
		.proc_handler	= write_intent_sysctl,
	},
};

static int __init write_intent_init(void)
{
	register_sysctl_init("vm", write_intent_table);
	write_intent_set(RMW);
	return 0;
}
subsys_initcall(write_intent_init);
