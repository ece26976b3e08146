// SPDX-License-Identifier: GPL-2.0
/* Prints each TLBI that has a name, and whether it is told to be a broadcast. */
#include <stdio.h>

#include "decode.h"

int main(void)
{
	for (unsigned int number = 0; number < NR_TLBI; number++)
		if (tlbi_name(number))
			printf("%s %d\n", tlbi_name(number), tlbi_is_broadcast(number));
	return 0;
}
