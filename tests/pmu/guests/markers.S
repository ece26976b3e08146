/* SPDX-License-Identifier: GPL-2.0 */
/* Markers that do not pair, by -DNESTED, -DNO_BEGIN or -DNO_END. */
	.text
	.global main
main:
#ifdef NESTED
	hint	#0x7e
	hint	#0x7f
	hint	#0x7e
	hint	#0x7e
#endif
#ifdef NO_BEGIN
	hint	#0x7f
#endif
#ifdef NO_END
	hint	#0x7e
#endif
	ret
