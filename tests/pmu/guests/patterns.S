/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Cache patterns: 4 and 5 lines of one set, 100 times; a pseudo-random walk that
 * reads and writes; one page remapped again and again.
 */
	.text

	/* reads \n lines 16 KiB apart (one way of 64 KiB in 4), 100 times */
	.macro	same_set n
	mov	x1, #100
	hint	#0x7e
1:	mov	x2, x20
	mov	x3, #\n
2:	ldr	x0, [x2]
	add	x2, x2, #(16 << 10)
	subs	x3, x3, #1
	b.ne	2b
	subs	x1, x1, #1
	b.ne	1b
	hint	#0x7f
	.endm

	.global main
main:
	mov	x29, x30
	ldr	x20, =0xffffff8048000000
	same_set 4
	ldr	x20, =0xffffff8048800040
	same_set 5

	/* 200,000 steps of a linear congruential generator over 1 MiB */
	ldr	x20, =0xffffff8049000000
	ldr	x1, =6364136223846793005
	ldr	x2, =1442695040888963407
	mov	x3, #1
	mov	w4, #50000
	hint	#0x7e
3:	.rept	2
	madd	x3, x3, x1, x2
	lsr	x5, x3, #44
	ldr	w0, [x20, x5]
	madd	x3, x3, x1, x2
	lsr	x5, x3, #44
	strb	w0, [x20, x5]
	.endr
	subs	w4, w4, #1
	b.ne	3b
	hint	#0x7f

	/* the first 2 MiB of the third gigabyte: one place in RAM, then another */
	adrp	x22, kernel_table
	add	x22, x22, :lo12:kernel_table
	adrp	x24, blocks
	ubfx	x25, x24, #0, #39
	orr	x25, x25, #3
	str	x25, [x22, #16]
	ldr	x23, =0xffffff8080000000
	ldr	x10, =0x4c000701
	ldr	x11, =0x4c200701
	mov	x12, #100
	hint	#0x7e
4:	str	x10, [x24]
	dsb	nsh
	tlbi	vmalle1
	dsb	nsh
	isb
	ldr	x0, [x23]
	eor	x10, x10, x11
	eor	x11, x10, x11
	eor	x10, x10, x11
	subs	x12, x12, #1
	b.ne	4b
	hint	#0x7f
	ret	x29

	.bss
	.balign	4096
blocks:
	.zero	4096
