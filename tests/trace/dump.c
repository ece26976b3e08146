// SPDX-License-Identifier: GPL-2.0
/* Prints a file in hexadecimal, for the results channel of a guest. */
#include <stdio.h>

int main(int argc, char *argv[])
{
	FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
	int byte;

	if (!file)
		return 1;
	while ((byte = getc(file)) != EOF)
		printf("%02x", byte);
	return 0;
}
