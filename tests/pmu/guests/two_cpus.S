/* SPDX-License-Identifier: GPL-2.0 */
/* Two CPUs count a word up in turn, 100 times each; one has the even numbers. */
#define TURNS	100

	.text
	/* with w4 = 0 or 1: waits until the word is w4, then w4 + 2, and so on */
	.macro	take_turns
	mov	w1, #TURNS
1:	ldr	w3, [x20]
	cmp	w3, w4
	b.eq	2f
	yield
	b	1b
2:	add	w3, w3, #1
	str	w3, [x20]
	add	w4, w4, #2
	subs	w1, w1, #1
	b.ne	1b
	.endm

	.global main
main:
	mov	x29, x30
	adrp	x20, word
	add	x20, x20, :lo12:word
	/* PSCI CPU_ON: CPU 1 starts at a physical address, with the MMU off */
	ldr	x0, =0xc4000003
	mov	x1, #1
	adrp	x2, second
	add	x2, x2, :lo12:second
	and	x2, x2, #0x7fffffffff
	mov	x3, #0
	hvc	#0
	/* both run before the region begins, and end before it ends */
	add	x21, x20, #128
3:	ldr	w3, [x21]
	yield
	cbz	w3, 3b
	mov	w4, #0
	hint	#0x7e
	take_turns
	mov	w4, #(2 * TURNS)
4:	ldr	w3, [x20]
	yield
	cmp	w3, w4
	b.ne	4b
	hint	#0x7f
	ret	x29

second:
	adrp	x0, kernel_table
	msr	ttbr0_el1, x0
	msr	ttbr1_el1, x0
	ldr	x0, =(25 | 1 << 8 | 1 << 10 | 3 << 12 | 25 << 16 | 1 << 24 | 1 << 26 | 3 << 28 | 2 << 30 | 2 << 32)
	msr	tcr_el1, x0
	ldr	x0, =(0xff | 0x04 << 8)
	msr	mair_el1, x0
	isb
	mrs	x0, sctlr_el1
	mov	x1, #(1 | 1 << 2)
	orr	x0, x0, x1
	msr	sctlr_el1, x0
	isb
	adrp	x0, upper_second
	add	x0, x0, :lo12:upper_second
	ldr	x1, =0xffffff8000000000
	orr	x0, x0, x1
	br	x0
upper_second:
	adrp	x20, word
	add	x20, x20, :lo12:word
	mov	w3, #1
	str	w3, [x20, #128]
	mov	w4, #1
	take_turns
3:	wfi
	b	3b

	.bss
	.balign	128
word:
	.zero	256
