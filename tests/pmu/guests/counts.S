/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Regions whose counts follow from their source. A region is between two hints;
 * test_plugin.py names the regions in this order.
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
	mov	x29, x30
	adrp	x20, buffer
	add	x20, x20, :lo12:buffer
	ldr	x0, [x20]

	/* nothing */
	region
	end_region

	/* plain: 3 instructions and 99 more than fit into one piece */
	region
	mov	x0, #1
	add	x0, x0, #1
	nop
	.rept	99
	add	x1, x1, #1
	.endr
	end_region

	/* memory: 6 loads, 4 stores, of which 1 atomic is both; 11 instructions */
	region
	ldr	x0, [x20]
	str	x0, [x20, #8]
	ldp	x0, x1, [x20]
	stp	x0, x1, [x20, #16]
	ldrb	w2, [x20, #1]
	ldadd	x0, x1, [x20]
	ldar	x3, [x20]
	stlr	x3, [x20]
	ldr	q0, [x20]
	prfm	pldl1keep, [x20]
	mov	x0, x0
	end_region

	/* loop: 1000 times load, subtract, branch */
	mov	x1, #1000
	region
1:	ldr	x0, [x20]
	subs	x1, x1, #1
	b.ne	1b
	end_region

	/* system: 3 DSB, 2 ISB, TLBI of five kinds */
	region
	tlbi	vmalle1
	tlbi	vae1is, x0
	tlbi	vae1is, x0
	tlbi	vale1is, x0
	tlbi	vae1, x0
	tlbi	vmalle1is
	dsb	ish
	dsb	nsh
	dsb	sy
	isb
	isb
	dmb	sy
	end_region

	/* interrupts: three kinds, sent to no CPU; reads and the register beside them */
	region
	msr	icc_sgi1r_el1, xzr
	msr	icc_sgi1r_el1, xzr
	msr	icc_asgi1r_el1, xzr
	msr	icc_sgi0r_el1, xzr
	mrs	x0, icc_rpr_el1
	msr	icc_pmr_el1, xzr
	end_region

	/* calls: EL0 executes 5 SVC and a BRK */
	adrp	x0, user
	add	x0, x0, :lo12:user
	and	x0, x0, #0x7fffffffff
	msr	elr_el1, x0
	msr	spsr_el1, xzr
	mov	x21, #0
	region
	eret
back:	end_region

	/* aborts: 20 times unmap, load, abort, map, load again: see el1_sync */
	adrp	x22, kernel_table
	add	x22, x22, :lo12:kernel_table
	ldr	x23, =0xffffff8080000000	/* third gigabyte */
	mov	x24, #20
	region
2:	mov	x0, #7
	str	xzr, [x22, #16]
	tlbi	vmalle1
	dsb	nsh
	isb
	ldr	x1, [x23]
	add	x1, x1, x0
	subs	x24, x24, #1
	b.ne	2b
	end_region

	/* zva: 4 blocks */
	region
	dc	zva, x20
	dc	zva, x20
	dc	zva, x20
	dc	zva, x20
	nop
	end_region

	/* device: 3 accesses to the UART's flag register */
	ldr	x0, =0xffffff8009000018
	region
	ldr	w1, [x0]
	nop
	ldr	w1, [x0]
	nop
	ldr	w1, [x0]
	nop
	end_region

	/* straddle: 2 loads, the second crosses into a second line */
	region
	ldr	x0, [x20]
	ldr	x0, [x20, #60]
	end_region
	ret	x29

	.ltorg

	/* EL0, in the lower half: 22 instructions */
	.balign	4096
user:
	mov	x0, #0
1:	add	x0, x0, #1
	svc	#0
	cmp	x0, #5
	b.ne	1b
	brk	#0

	.balign	0x800
	.global vectors
vectors:
	.rept	4
	b	power_off
	.balign	0x80
	.endr
	b	el1_sync
	.balign	0x80
	.rept	3
	b	power_off
	.balign	0x80
	.endr
	b	el0_sync
	.balign	0x80
	.rept	7
	b	power_off
	.balign	0x80
	.endr

el0_sync:
	mrs	x10, esr_el1
	lsr	x10, x10, #26
	cmp	x10, #0x15		/* SVC from AArch64 */
	b.ne	1f
	eret
1:	/* the BRK: continue in the kernel */
	b	back

	/* A data abort maps the third gigabyte onto RAM. */
el1_sync:
	ldr	x10, =0x40000711	/* block, AF, inner shareable, normal, kernel */
	str	x10, [x22, #16]
	dsb	nsh
	isb
	eret

	.bss
	.balign	4096
buffer:
	.zero	8192
