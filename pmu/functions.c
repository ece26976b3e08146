// SPDX-License-Identifier: GPL-2.0
#include "functions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CODE	"__primary_switched"
#define PAGE_OFFSET_MASK	UINT64_C(0xfff)

static const char * const vector_names[] = {
	"vectors", "tramp_vectors", "__bp_harden_el1_vectors",
};

static bool is_vectors(const char *name)
{
	for (size_t i = 0; i < sizeof(vector_names) / sizeof(vector_names[0]); i++)
		if (!strcmp(name, vector_names[i]))
			return true;
	return false;
}

static bool add(struct functions *f, uint64_t start, const char *name)
{
	/* Doubled whenever the number is a power of two. */
	if (!(f->nr & (f->nr - 1))) {
		void *more = realloc(f->at, (f->nr ? 2 * f->nr : 1) * sizeof(*f->at));

		if (!more)
			return false;
		f->at = more;
	}
	f->at[f->nr].start = start;
	f->at[f->nr].moves_stack = UINT64_MAX;
	f->at[f->nr].vectors = is_vectors(name);
	f->at[f->nr].name = strdup(name);
	return f->at[f->nr++].name;
}

/* Of several names for one address, __pi_memcpy and memcpy, the plainest. */
static bool is_plainer(const char *name, const char *than)
{
	return strspn(name, "_") < strspn(than, "_");
}

static bool note_symbol(struct functions *f, uint64_t address, char type,
			const char *name)
{
	struct function *last = &f->at[f->nr - 1];

	if (!strcmp(name, "_end"))
		f->end = address;
	if (!strchr("tTwW", type))
		return true;
	if (!strcmp(name, FIRST_CODE))
		f->known = address;
	if (f->nr == FUNCTION_FIRST || last->start != address)
		return add(f, address, name);
	if (is_plainer(name, last->name)) {
		last->name = strdup(name);
		last->vectors |= is_vectors(name);
	}
	return last->name;
}

static bool refuse(char *error, size_t error_size, const char *map, const char *why)
{
	snprintf(error, error_size, "profile=%s: %s", map, why);
	return false;
}

bool functions_read(struct functions *f, const char *map, char *error,
		    size_t error_size)
{
	FILE *file = fopen(map, "r");
	char line[1024], name[512], type;
	uint64_t address, last = 0;
	bool room = add(f, 0, "user code") && add(f, 0, "another task") &&
		add(f, 0, "code without a symbol");

	if (!file)
		return refuse(error, error_size, map, strerror(errno));
	while (room && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%" SCNx64 " %c %511s", &address, &type, name) != 3 ||
		    address < last) {
			fclose(file);
			return refuse(error, error_size, map,
				      "a line is not ADDRESS TYPE NAME in the order of addresses");
		}
		last = address;
		room = note_symbol(f, address, type, name);
	}
	fclose(file);
	if (!f->end)
		f->end = last + 1;
	if (!f->known)
		return refuse(error, error_size, map, "it does not have " FIRST_CODE);
	if (!room || !counters_init(&f->counters, function_counter(f->nr, 0), 1))
		return refuse(error, error_size, map, "not enough memory");
	return true;
}

bool functions_meet(struct functions *f, const struct qemu_plugin_insn *first)
{
	if (f->known_host)
		return true;
	f->known_host = (uintptr_t)qemu_plugin_insn_haddr(first);
	return !((qemu_plugin_insn_vaddr(first) ^ f->known) & PAGE_OFFSET_MASK);
}

uint64_t functions_address(const struct functions *f, const struct qemu_plugin_insn *insn)
{
	return (uintptr_t)qemu_plugin_insn_haddr(insn) - f->known_host + f->known;
}

unsigned int functions_find(const struct functions *f, uint64_t address)
{
	unsigned int low = FUNCTION_FIRST, high = f->nr;

	if (low == high || address < f->at[low].start || address >= f->end)
		return FUNCTION_UNKNOWN;
	while (high - low > 1) {
		unsigned int middle = low + (high - low) / 2;

		if (f->at[middle].start <= address)
			low = middle;
		else
			high = middle;
	}
	return low;
}

unsigned int functions_named(const struct functions *f, const char *name)
{
	for (unsigned int i = FUNCTION_FIRST; i < f->nr; i++)
		if (!strcmp(f->at[i].name, name))
			return i;
	return FUNCTION_UNKNOWN;
}
