/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM write_intent

#if !defined(_TRACE_WRITE_INTENT_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_WRITE_INTENT_H

#include <linux/tracepoint.h>

#include <asm/write_intent_insn.h>

TRACE_DEFINE_ENUM(WRITE_INTENT_RMW);
TRACE_DEFINE_ENUM(WRITE_INTENT_EXCLUSIVE);

TRACE_EVENT(write_intent_fault,
	    TP_PROTO(unsigned long address, unsigned long pc, u32 insn,
		     enum write_intent kind),
	    TP_ARGS(address, pc, insn, kind),

	    TP_STRUCT__entry(__field(unsigned long, address)
			     __field(unsigned long, pc)
			     __field(u32, insn)
			     __field(u32, kind)
	    ),

	    TP_fast_assign(__entry->address = address;
			   __entry->pc = pc;
			   __entry->insn = insn;
			   __entry->kind = kind;
	    ),

	    TP_printk("address=0x%lx pc=0x%lx insn=0x%08x kind=%s",
		      __entry->address, __entry->pc, __entry->insn,
		      __print_symbolic(__entry->kind,
				       { WRITE_INTENT_RMW, "rmw" },
				       { WRITE_INTENT_EXCLUSIVE, "exclusive" }))
);

#endif /* _TRACE_WRITE_INTENT_H */

/* This part must be outside protection */
#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .

#define TRACE_INCLUDE_FILE trace_write_intent
#include <trace/define_trace.h>
