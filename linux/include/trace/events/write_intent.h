/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM write_intent

#if !defined(_TRACE_WRITE_INTENT_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_WRITE_INTENT_H

#include <linux/ptrace.h>
#include <linux/tracepoint.h>

TRACE_EVENT(write_intent,
	    TP_PROTO(const struct vm_fault *vmf, int intent),
	    TP_ARGS(vmf, intent),

	    TP_STRUCT__entry(__field(unsigned long, address)
			     __field(unsigned long, pc)
			     __field(bool, certain)
	    ),

	    TP_fast_assign(__entry->address = vmf->real_address;
			   __entry->pc = instruction_pointer(current_pt_regs());
			   __entry->certain = intent == WRITE_INTENT_CERTAIN;
	    ),

	    TP_printk("address=0x%lx pc=0x%lx certain=%d", __entry->address,
		      __entry->pc, __entry->certain)
);

#endif /* _TRACE_WRITE_INTENT_H */

/* This part must be outside protection */
#include <trace/define_trace.h>
