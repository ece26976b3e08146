/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reads 64 MiB in order, 8 bytes at a time, repeatedly: 320 Mi accesses in
 * 800 Mi instructions. Built with -DPASSES=0 it does all except that, which gives
 * the time to be subtracted.
 */
#ifndef PASSES
#define PASSES	40
#endif
#ifndef BYTES
#define BYTES	(64 << 20)
#endif

	.text
	.global main
main:
	/* RAM behind the program, seen from the kernel's half */
	ldr	x10, =0xffffff8048000000
	ldr	x11, =PASSES
	mov	x2, #0
	hint	#0x7e
	cbz	x11, 3f
	mov	x12, #BYTES
1:	mov	x0, x10
	add	x1, x10, x12
2:	ldr	x3, [x0], #8
	add	x2, x2, x3
	ldr	x4, [x0], #8
	add	x2, x2, x4
	ldr	x5, [x0], #8
	add	x2, x2, x5
	ldr	x6, [x0], #8
	add	x2, x2, x6
	cmp	x0, x1
	b.ne	2b
	subs	x11, x11, #1
	b.ne	1b
3:	hint	#0x7f
	ret
