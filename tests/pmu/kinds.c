// SPDX-License-Identifier: GPL-2.0
/* Prints what each word of standard input does to memory, as insn_kind() has it. */
#include <stdio.h>

#include "decode.h"

int main(void)
{
	static const char * const names[] = {
		[INSN_LOAD] = "load", [INSN_STORE] = "store",
		[INSN_LOAD_STORE] = "load and store", [INSN_EXCLUSIVE_STORE] = "store",
		[INSN_DC_ZVA] = "store", [INSN_DC_IC] = "maintenance",
	};
	uint32_t word;

	while (fread(&word, sizeof(word), 1, stdin)) {
		enum insn_kind kind = insn_kind(word);

		puts(insn_may_abort(kind) ? names[kind] : "none");
	}
	return 0;
}
