/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM fault_ahead

#if !defined(_TRACE_FAULT_AHEAD_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_FAULT_AHEAD_H

#include <linux/tracepoint.h>

TRACE_EVENT(fault_ahead,
	    TP_PROTO(unsigned long address, int order),
	    TP_ARGS(address, order),

	    TP_STRUCT__entry(__field(unsigned long, address)
			     __field(int, order)
	    ),

	    TP_fast_assign(__entry->address = address;
			   __entry->order = order;
	    ),

	    TP_printk("address=0x%lx order=%d", __entry->address, __entry->order)
);

#endif /* _TRACE_FAULT_AHEAD_H */

/* This part must be outside protection */
#include <trace/define_trace.h>
