// SPDX-License-Identifier: GPL-2.0
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

static void complain(const struct run *run, const char *what, va_list args)
{
	fputs("ftbench: ", stderr);
	if (run)
		fprintf(stderr, "%s: ", run->experiment->name);
	vfprintf(stderr, what, args);
	fputc('\n', stderr);
}

enum status refuse(const struct run *run, const char *what, ...)
{
	va_list args;

	va_start(args, what);
	complain(run, what, args);
	va_end(args);
	return STATUS_USAGE;
}

enum status wrong(const struct run *run, const char *what, ...)
{
	va_list args;

	va_start(args, what);
	complain(run, what, args);
	va_end(args);
	return STATUS_WRONG;
}

size_t param_place(const struct run *run, const char *name)
{
	size_t place = 0;

	while (place < run->nr_values &&
	       strcmp(run->values[place].param->name, name))
		place++;
	return place;
}

/* Reading a parameter that is not declared is a bug of the experiment. */
static size_t own_place(const struct run *run, const char *name)
{
	size_t place = param_place(run, name);

	if (place == run->nr_values) {
		fprintf(stderr, "ftbench: %s does not declare --%s\n",
			run->experiment->name, name);
		abort();
	}
	return place;
}

uint64_t param_number(const struct run *run, const char *name)
{
	return run->values[own_place(run, name)].number;
}

const char *param_text(const struct run *run, const char *name)
{
	return run->values[own_place(run, name)].text;
}

bool param_given(const struct run *run, const char *name)
{
	return run->values[own_place(run, name)].given;
}

void param_decide(struct run *run, const char *name, uint64_t number)
{
	struct value *value = &run->values[own_place(run, name)];

	value->number = number;
	value->given = true;
}
