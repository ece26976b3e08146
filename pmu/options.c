// SPDX-License-Identifier: GPL-2.0
#include "options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char * const policy_names[] = {
	[CACHE_LRU] = "lru",
	[CACHE_PLRU] = "plru",
	[CACHE_RANDOM] = "random",
};

#define NR_POLICIES	(sizeof(policy_names) / sizeof(policy_names[0]))

const char *policy_name(enum cache_policy policy)
{
	return policy_names[policy];
}

struct parser {
	char *error;
	size_t error_size;
};

__attribute__((format(printf, 2, 3)))
static bool fail(const struct parser *p, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(p->error, p->error_size, format, args);
	va_end(args);
	return false;
}

/* Reads digits at *@s and moves past them. */
static bool parse_number(const char **s, uint64_t *n)
{
	char *end;

	if (**s < '0' || **s > '9')
		return false;
	errno = 0;
	*n = strtoull(*s, &end, 10);
	*s = end;
	return !errno;
}

static bool parse_size(const char **s, uint64_t *size)
{
	unsigned int shift = 0;

	if (!parse_number(s, size))
		return false;
	if (**s == 'K')
		shift = 10;
	else if (**s == 'M')
		shift = 20;
	if (shift)
		(*s)++;
	if (*size > UINT64_MAX >> shift)
		return false;
	*size <<= shift;
	return true;
}

static bool parse_geometry(const char *s, struct cache_geometry *g)
{
	uint64_t ways, line;

	if (!parse_size(&s, &g->size) || *s++ != ':' ||
	    !parse_number(&s, &ways) || *s++ != ':' ||
	    !parse_number(&s, &line) || *s++ != ':')
		return false;
	if (ways > UINT32_MAX || line > UINT32_MAX)
		return false;
	g->ways = ways;
	g->line = line;
	for (size_t i = 0; i < NR_POLICIES; i++) {
		if (!strcmp(s, policy_names[i])) {
			g->policy = i;
			return true;
		}
	}
	return false;
}

static bool parse_level(const char *name, size_t length, enum cache_level *level)
{
	for (int l = 0; l < NR_LEVELS; l++) {
		if (strlen(level_name(l)) == length &&
		    !strncmp(name, level_name(l), length)) {
			*level = l;
			return true;
		}
	}
	return false;
}

static bool parse_cpus(const char *s, unsigned int nr_cpus, uint64_t *first,
		       uint64_t *last)
{
	if (!parse_number(&s, first))
		return false;
	*last = *first;
	if (*s == '-') {
		s++;
		if (!parse_number(&s, last))
			return false;
	}
	return *s == '=' && *first <= *last && *last < nr_cpus;
}

static bool parse_histogram(const struct parser *p, struct hierarchy_setup *setup,
			    const char *s)
{
	for (;;) {
		size_t length = strcspn(s, "+");
		enum cache_level level;

		if (!parse_level(s, length, &level))
			return fail(p, "histogram=%s: there are l1i, l1d, l2 and l3", s);
		setup->histogram[level] = true;
		if (!s[length])
			return true;
		s += length + 1;
	}
}

/* @option is LEVEL=... or LEVEL@CPUS=... */
static bool parse_cache(const struct parser *p, struct hierarchy_setup *setup,
			enum cache_level level, const char *option)
{
	const char *after = option + strlen(level_name(level));
	uint64_t first = 0, last = setup->nr_cpus - 1;
	struct level_setup given = { .present = true };

	if (*after == '@' && level == LEVEL_L3)
		return fail(p, "%s: all CPUs share the l3", option);
	if (*after == '@' && !parse_cpus(after + 1, setup->nr_cpus, &first, &last))
		return fail(p, "%s: the guest has CPUs 0 to %u; write LEVEL@FIRST-LAST=...",
			    option, setup->nr_cpus - 1);
	if (!parse_geometry(strchr(after, '=') + 1, &given.geometry))
		return fail(p, "%s: a cache is SIZE:WAYS:LINE:POLICY, as in 64K:4:64:lru",
			    option);
	for (uint64_t cpu = first; cpu <= last; cpu++)
		setup->cpu[cpu][level] = given;
	return true;
}

/* @option is NAME=on or NAME=off */
static bool parse_switch(const struct parser *p, bool *on, const char *option)
{
	const char *value = strchr(option, '=') + 1;

	*on = !strcmp(value, "on");
	return *on || !strcmp(value, "off") || fail(p, "%s: on or off", option);
}

static bool parse_option(const struct parser *p, struct options *options,
			 const char *option)
{
	const char *value = strchr(option, '=');
	enum cache_level level;

	if (!value)
		return fail(p, "%s: an option is NAME=VALUE", option);
	if (parse_level(option, strcspn(option, "=@"), &level))
		return parse_cache(p, &options->caches, level, option);
	value++;
	if (!strncmp(option, "out=", 4)) {
		options->out = value;
		return true;
	}
	if (!strncmp(option, "profile=", 8)) {
		options->profile = value;
		return true;
	}
	if (!strncmp(option, "histogram=", 10))
		return parse_histogram(p, &options->caches, value);
	if (!strncmp(option, "seed=", 5)) {
		if (parse_number(&value, &options->caches.seed) && !*value)
			return true;
		return fail(p, "%s: a seed is a whole number", option);
	}
	if (!strncmp(option, "zva=", 4)) {
		uint64_t *n = &options->zva_block;

		/* DCZID_EL0 can express 4 bytes to 2 KiB. */
		if (parse_number(&value, n) && !*value && *n >= 4 && *n <= 2048 &&
		    !(*n & (*n - 1)))
			return true;
		return fail(p, "%s: a power of two from 4 to 2048", option);
	}
	if (!strncmp(option, "check=", 6))
		return parse_switch(p, &options->check, option);
	return fail(p, "%s: no such option", option);
}

bool options_parse(struct options *options, unsigned int nr_cpus, int argc,
		   char **argv, char *error, size_t error_size)
{
	const struct parser p = { .error = error, .error_size = error_size };

	memset(options, 0, sizeof(*options));
	options->caches.nr_cpus = nr_cpus;
	options->caches.seed = 1;
	options->zva_block = 64;
	options->caches.cpu = calloc(nr_cpus, sizeof(*options->caches.cpu));
	if (!options->caches.cpu)
		return fail(&p, "not enough memory");
	for (int i = 0; i < argc; i++)
		if (!parse_option(&p, options, argv[i]))
			return false;
	if (!options->out || !*options->out)
		return fail(&p, "out=FILE is missing: where shall the counts go?");
	for (int l = 0; l < NR_LEVELS; l++)
		if (options->caches.histogram[l] && !options->caches.cpu[0][l].present)
			return fail(&p, "histogram=%s: there is no such cache in the model",
				    level_name(l));
	return true;
}
