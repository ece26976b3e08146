/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions whose every instruction and every call follow from their source;
 * test_profile.py has the numbers, region by region.
 */
	.arch	armv8.2-a
	.macro	region
	hint	#0x7e
	.endm
	.macro	end_region
	hint	#0x7f
	.endm

	.text
	.global main
main:
	mov	x28, x30
	adrp	x20, buffer
	add	x20, x20, :lo12:buffer
	ldr	x0, [x20]

	/* calls: 100 times; 4 instructions here */
	mov	x19, #100
	region
1:	bl	leaf
	bl	outer
	subs	x19, x19, #1
	b.ne	1b
	end_region

	/* exceptions: one from a function of the kernel; 1 instruction here */
	region
	bl	excepting
	end_region

	/* falling: 1 instruction here */
	region
	bl	falls
	end_region

	/* system: 1 instruction here */
	region
	bl	system
	end_region

	/* stack: 1 instruction here */
	region
	bl	moves
	end_region

	/* tasks: to the other one and back, twice; 3 instructions each here */
	adrp	x21, contexts
	add	x21, x21, :lo12:contexts
	adrp	x0, other_stack
	add	x0, x0, :lo12:other_stack
	adrp	x1, task
	add	x1, x1, :lo12:task
	stp	x0, x1, [x21, #64]
	region
	mov	x0, x21
	add	x1, x21, #64
	bl	cpu_switch_to
	mov	x0, x21
	add	x1, x21, #64
	bl	cpu_switch_to
	end_region

	/* interrupts: as calls, 2000 times, and 1; the timer interrupts at all places */
	ldr	x21, =0xffffff8008000000	/* GICv2: distributor, CPU interface at 64 KiB */
	add	x22, x21, #0x10, lsl #12
	mov	w0, #1
	str	w0, [x21]
	str	w0, [x22]
	mov	w1, #0xff
	str	w1, [x22, #4]
	mov	w1, #(1 << 27)			/* the virtual timer's */
	str	w1, [x21, #0x100]
	msr	cntv_tval_el0, x0
	msr	cntv_ctl_el0, x0
	mov	x19, #2000
	msr	daifclr, #2
	region
1:	bl	leaf
	bl	outer
	subs	x19, x19, #1
	b.ne	1b
	msr	daifset, #2
	end_region
	ret	x28

leaf:
	nop
	ret

/* 4 instructions, and leaf and tail */
outer:
	stp	x29, x30, [sp, #-16]!
	bl	leaf
	ldp	x29, x30, [sp], #16
	b	tail

tail:
	nop
	ret

/* 5 instructions, of which SVC does not complete before its ERET: counted once */
excepting:
	mov	x26, x30
	nop
	svc	#0
	mov	x30, x26
	ret

/* 1 load, behind which the next function begins */
falls:
	ldr	x0, [x20]
into:
	nop
	ret

/* 9 instructions: of each kind 1, MSR and atomics 2 */
system:
	tlbi	vmalle1
	dsb	nsh
	isb
	msr	tpidr_el1, x20
	msr	daifset, #2
	ldadd	x0, x1, [x20]
	ldxr	x0, [x20]
	clrex
	ret

/* 8 instructions */
moves:
	mov	x26, x30
	mov	x27, sp
	adrp	x9, other_stack
	add	sp, x9, :lo12:other_stack
	bl	leaf
	mov	sp, x27
	mov	x30, x26
	ret

/* 5 instructions */
cpu_switch_to:
	mov	x9, sp
	stp	x9, x30, [x0]
	ldp	x9, x30, [x1]
	mov	sp, x9
	ret

/* 5 instructions, the second time 2 and the first 3 of the loop again */
task:
	nop
1:	bl	leaf
	add	x0, x21, #64
	mov	x1, x21
	bl	cpu_switch_to
	b	1b

	.ltorg

	.balign	0x800
	.global vectors
vectors:
	.rept	4
	b	power_off
	.balign	0x80
	.endr
	b	el1_sync
	.balign	0x80
	b	el1_irq
	.balign	0x80
	.rept	10
	b	power_off
	.balign	0x80
	.endr

/* 4 instructions, and leaf */
el1_sync:
	mov	x25, x30
	bl	leaf
	mov	x30, x25
	eret

/* 9 instructions; the next interrupt comes after one to four ticks of 16 instructions */
el1_irq:
	ldr	w10, [x22, #12]
	add	x11, x11, #1
	and	x12, x11, #3
	add	x12, x12, #1
	msr	cntv_tval_el0, x12
	isb
	str	w10, [x22, #16]
	nop
	eret

	.bss
	.balign	4096
buffer:
	.zero	4096
contexts:
	.zero	4096
	.zero	4096
other_stack:
	.zero	4096
