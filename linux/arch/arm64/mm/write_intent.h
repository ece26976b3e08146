/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM write_intent

#if !defined(_TRACE_WRITE_INTENT_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_WRITE_INTENT_H

#include <linux/tracepoint.h>

TRACE_EVENT(write_intent,
	    TP_PROTO(unsigned long address, unsigned long pc, u32 insn),
	    TP_ARGS(address, pc, insn),

	    TP_STRUCT__entry(__field(unsigned long, address)
			     __field(unsigned long, pc)
			     __field(u32, insn)
	    ),

	    TP_fast_assign(__entry->address = address;
			   __entry->pc = pc;
			   __entry->insn = insn;
	    ),

	    TP_printk("address=0x%lx pc=0x%lx insn=0x%08x", __entry->address,
		      __entry->pc, __entry->insn)
);

#endif /* _TRACE_WRITE_INTENT_H */

/* This part must be outside protection */
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#include <trace/define_trace.h>
