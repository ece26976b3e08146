/* SPDX-License-Identifier: GPL-2.0 */
/*
 * User code that reads and writes pages of its own, numbered from 0x50000000 on.
 * test_plugin.py has what a watch must say of each.
 */
	.arch	armv8.2-a
	.macro	address reg, page
	mov	\reg, #0x50000000
	add	\reg, \reg, #(\page << 12)
	.endm

	.macro	call number
	mov	x8, #\number
	svc	#0
	.endm

	.text
	.global main
main:
	mov	x29, x30
	/* EL0 may execute DC ZVA */
	mrs	x0, sctlr_el1
	orr	x0, x0, #(1 << 14)
	msr	sctlr_el1, x0
	/* the first 2 MiB of the third gigabyte can be moved: see remap */
	adrp	x22, user_table
	add	x22, x22, :lo12:user_table
	adrp	x24, blocks
	ubfx	x25, x24, #0, #39
	orr	x25, x25, #3
	str	x25, [x22, #16]
	dsb	nsh
	adrp	x0, user
	add	x0, x0, :lo12:user
	and	x0, x0, #0x7fffffffff
	msr	elr_el1, x0
	msr	spsr_el1, xzr
	isb
	eret
back:	ret	x29

	/* EL0, in the lower half */
	.balign	4096
user:
	address	x1, 20
	str	x0, [x1]
	hint	#0x7c
	address	x1, 0
	ldr	x0, [x1]
	address	x1, 1
	str	x0, [x1]
	address	x1, 2
	.rept	3
	ldr	x0, [x1]
	.endr
	str	x0, [x1, #8]
	ldr	x0, [x1]
	address	x1, 3
	ldadd	x0, x2, [x1]
	/* into the next page */
	address	x1, 5
	str	x0, [x1, #-4]
	address	x1, 7
	ldr	x0, [x1, #-4]
	address	x1, 8
	dc	zva, x1
	nop
	call	1
	/* one address, two places */
	mov	x1, #0x80000000
	mov	x9, #0x50400000
	call	2
	ldr	x0, [x1]
	mov	x9, #0x50600000
	call	2
	str	x0, [x1]
	mov	x9, #0x50400000
	call	2
	ldr	x0, [x1]
	/* that is not there: read, written, read and then written by one instruction */
	call	3
	ldr	x0, [x1]
	call	3
	str	x0, [x1]
	call	3
	ldadd	x0, x2, [x1]
	call	3
	ldr	x0, [x1]
	hint	#0x7d
	hint	#0x7c
	address	x1, 1
	ldr	x0, [x1]
	hint	#0x7d
#ifdef NO_END
	hint	#0x7c
#endif
#ifdef NO_BEGIN
	hint	#0x7d
#endif
	call	0

	.balign	0x800
	.global vectors
vectors:
	.rept	8
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
	cmp	x10, #0x24		/* data abort: map where it was before, and go on */
	b.eq	remap
	cbz	x8, back
	cmp	x8, #2
	b.eq	remap
	b.hi	unmap
	/* The kernel writes for the user, reads for it, and writes memory of its own. */
	address	x10, 9
	sttr	x0, [x10]
	address	x10, 10
	ldtr	x0, [x10]
	adrp	x10, blocks
	ldadd	xzr, x2, [x10]
	eret
unmap:
	str	xzr, [x24]
	b	1f
remap:
	add	x10, x9, #0x741		/* block, AF, inner shareable, normal, user */
	str	x10, [x24]
1:
	dsb	nsh
	tlbi	vmalle1
	dsb	nsh
	isb
	eret

	.bss
	.balign	4096
blocks:
	.zero	4096
