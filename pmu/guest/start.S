/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The smallest machine that looks to a PMU like one with a kernel: MMU on, EL1
 * code in the upper half of the addresses behind TTBR1, EL0 in the lower behind
 * TTBR0. Calls main(), in EL1; a program adds vectors if it wants exceptions.
 *
 * For qemu-system-aarch64 -M virt -kernel, with RAM at 1 GiB: both halves map
 * the first gigabyte (devices) and the second (RAM) at the same offset.
 */
#define KERNEL_HALF	0xffffff8000000000

#define BLOCK		0x1
#define AF		(1 << 10)
#define SH_INNER	(3 << 8)
#define EL0		(1 << 6)
#define ATTR_DEVICE	(1 << 2)	/* index 1 of MAIR */
#define ATTR_NORMAL	(0 << 2)

/* 39 bits of address in each half, 4 KiB granule, inner shareable write-back */
#define TCR		(25 | 1 << 8 | 1 << 10 | 3 << 12 | \
			 25 << 16 | 1 << 24 | 1 << 26 | 3 << 28 | 2 << 30 | 2 << 32)
#define MAIR		(0xff | 0x04 << 8)
#define SCTLR_M_C_I	(1 | 1 << 2 | 1 << 12)

	.section .text.start, "ax"
	.global _start
_start:
	/* EL1 may not execute what EL0 may write, so this half comes later. */
	adrp	x0, kernel_table
	msr	ttbr0_el1, x0
	msr	ttbr1_el1, x0
	ldr	x0, =TCR
	msr	tcr_el1, x0
	ldr	x0, =MAIR
	msr	mair_el1, x0
	/* FP and SIMD registers are nobody's */
	mov	x0, #(3 << 20)
	msr	cpacr_el1, x0
	isb
	mrs	x0, sctlr_el1
	ldr	x1, =SCTLR_M_C_I
	orr	x0, x0, x1
	msr	sctlr_el1, x0
	isb
	adrp	x0, upper
	add	x0, x0, :lo12:upper
	ldr	x1, =KERNEL_HALF
	orr	x0, x0, x1
	br	x0
upper:
	adrp	x0, user_table
	and	x0, x0, #0x7fffffffff
	msr	ttbr0_el1, x0
	isb
	tlbi	vmalle1
	dsb	nsh
	isb
	adrp	x0, stack_top
	mov	sp, x0
	adrp	x0, vectors
	add	x0, x0, :lo12:vectors
	msr	vbar_el1, x0
	isb
	bl	main
	.global power_off
power_off:
	ldr	x0, =0x84000008		/* PSCI SYSTEM_OFF */
	hvc	#0
1:	wfi
	b	1b

	.ltorg

	/* A program without vectors of its own stops at its first exception. */
	.weak	vectors
	.balign	0x800
vectors:
	.rept	16
	b	power_off
	.balign	0x80
	.endr

	.data
	.balign	4096
	.global user_table
user_table:
	.quad	0x00000000 + (BLOCK | AF | ATTR_DEVICE)
	.quad	0x40000000 + (BLOCK | AF | SH_INNER | ATTR_NORMAL | EL0)
	.zero	4096 - 16
	.global kernel_table
kernel_table:
	.quad	0x00000000 + (BLOCK | AF | ATTR_DEVICE)
	.quad	0x40000000 + (BLOCK | AF | SH_INNER | ATTR_NORMAL)
	.zero	4096 - 16

	.bss
	.balign	4096
	.zero	4096
stack_top:
