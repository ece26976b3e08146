// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's write-intent decoder on the build host, for the decoder tests.
 *
 *   decoder kinds < WORDS
 *       Write one digit for each instruction word: 1 if it writes what it reads.
 *   decoder words SEED COUNT < BASES > WORDS
 *       Write COUNT words: in turn a random one, and a neighbour of one of
 *       BASES: new random register fields, then none to three bits flipped.
 *   decoder compare WORDS MNEMONICS EXPLAINED FIELD < DISASSEMBLY
 *       MNEMONICS has lines "name kind"; every other name means kind 0. FIELD
 *       is the tab-separated field of a line that has the name. EXPLAINED
 *       has lines "mask value kind name" of known differences: words with
 *       (word & mask) == value that have this kind in the decoder and whose
 *       name begins with this name, "*" for any. Write a line "different word kind name" for the first
 *       differences that are not explained; then "explained count" for each
 *       line of EXPLAINED, and last "compared count".
 *
 * Words are little-endian, as in memory; so must the host be.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Made by conftest.py from linux/ and its hooks. */
#include "intent.h"

struct words {
	u32 *word;
	size_t count;
};

struct mnemonic {
	char name[24];
	int kind;
};

struct mnemonics {
	struct mnemonic *entry;
	size_t count;
};

struct difference {
	u32 mask;
	u32 value;
	int kind;
	char name[24];
	size_t count;
};

struct differences {
	struct difference row[16];
	size_t rows;
	size_t unexplained;
};

/* The most unexplained differences that are reported. */
#define TOLD	20

static void __attribute__((noreturn)) fail(const char *what)
{
	fprintf(stderr, "decoder: %s: %s\n", what,
		errno ? strerror(errno) : "not understood");
	exit(2);
}

static void *grow(void *p, size_t size)
{
	p = realloc(p, size);
	if (!p)
		fail("memory");
	return p;
}

static struct words read_words(FILE *in)
{
	struct words w = { NULL, 0 };
	size_t room = 0, got;

	do {
		if (w.count == room) {
			room = room ? 2 * room : 1 << 16;
			w.word = grow(w.word, room * sizeof(u32));
		}
		got = fread(w.word + w.count, sizeof(u32), room - w.count, in);
		w.count += got;
	} while (got);
	if (ferror(in))
		fail("words");
	return w;
}

static int kinds(void)
{
	struct words w = read_words(stdin);

	for (size_t i = 0; i < w.count; i++)
		putchar('0' + aarch64_insn_writes_what_it_reads(w.word[i]));
	return 0;
}

/* xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift" */
static u32 draw(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (*state * 0x2545f4914f6cdd1dULL) >> 32;
}

/* Rs, Rn and Rt */
#define REGISTERS	0x001f03ffU

static int words(uint64_t seed, size_t count)
{
	struct words bases = read_words(stdin);

	if (!bases.count || !seed)
		fail("seed or bases");
	for (size_t i = 0; i < count; i++) {
		u32 word = draw(&seed);

		if (i % 2) {
			u32 flips = draw(&seed) % 4;

			word = (bases.word[draw(&seed) % bases.count] &
				~REGISTERS) | (word & REGISTERS);
			while (flips--)
				word ^= 1U << draw(&seed) % 32;
		}
		if (fwrite(&word, sizeof(word), 1, stdout) != 1)
			fail("words");
	}
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct mnemonic *)a)->name,
		      ((const struct mnemonic *)b)->name);
}

static struct mnemonics read_mnemonics(const char *path)
{
	struct mnemonics m = { NULL, 0 };
	struct mnemonic one;
	FILE *in = fopen(path, "r");

	if (!in)
		fail(path);
	while (fscanf(in, "%23s %d", one.name, &one.kind) == 2) {
		m.entry = grow(m.entry, (m.count + 1) * sizeof(one));
		m.entry[m.count++] = one;
	}
	fclose(in);
	qsort(m.entry, m.count, sizeof(one), by_name);
	return m;
}

/* The field of @line, NUL-terminated, or NULL if the line has too few. */
static char *field_of(char *line, int field)
{
	while (field--) {
		line = strchr(line, '\t');
		if (!line)
			return NULL;
		line++;
	}
	line[strcspn(line, " \t\n")] = '\0';
	return line;
}

static struct differences read_differences(const char *path)
{
	struct differences d = { .rows = 0 };
	FILE *in = fopen(path, "r");

	if (!in)
		fail(path);
	while (d.rows < sizeof(d.row) / sizeof(d.row[0])) {
		struct difference *row = &d.row[d.rows];

		if (fscanf(in, "%x %x %d %23s", &row->mask, &row->value,
			   &row->kind, row->name) != 4)
			break;
		d.rows++;
	}
	if (!feof(in))
		fail("explanations");
	fclose(in);
	return d;
}

static void note(struct differences *d, u32 word, int kind, const char *name)
{
	for (size_t i = 0; i < d->rows; i++) {
		struct difference *row = &d->row[i];

		if ((word & row->mask) == row->value && kind == row->kind &&
		    (!strcmp(row->name, "*") ||
		     !strncmp(name, row->name, strlen(row->name)))) {
			row->count++;
			return;
		}
	}
	if (d->unexplained++ < TOLD)
		printf("different %08x %d %s\n", word, kind, name);
}

static int compare(const char *words_path, const char *mnemonics_path,
		   const char *differences_path, int field)
{
	struct differences differences = read_differences(differences_path);
	struct mnemonics known = read_mnemonics(mnemonics_path);
	FILE *in = fopen(words_path, "rb");
	size_t size = 0, i = 0;
	char *line = NULL;
	struct words w;

	if (!in)
		fail(words_path);
	w = read_words(in);
	fclose(in);

	/* Lines before it name the file, and have tabs, too. */
	while (getline(&line, &size, stdin) > 0)
		if (!strncmp(line, "Disassembly of section", 22))
			break;

	while (getline(&line, &size, stdin) > 0) {
		const struct mnemonic *found;
		struct mnemonic wanted;
		int kind;
		char *name = field_of(line, field);

		if (!name)
			continue;
		if (i == w.count)
			fail("more disassembly than words");
		snprintf(wanted.name, sizeof(wanted.name), "%s", name);
		found = bsearch(&wanted, known.entry, known.count,
				sizeof(wanted), by_name);
		kind = aarch64_insn_writes_what_it_reads(w.word[i]);
		if (kind != (found ? found->kind : 0))
			note(&differences, w.word[i], kind, name);
		i++;
	}
	if (i != w.count)
		fail("less disassembly than words");
	for (size_t row = 0; row < differences.rows; row++)
		printf("explained %zu\n", differences.row[row].count);
	printf("compared %zu\n", i);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "kinds"))
		return kinds();
	if (argc == 4 && !strcmp(argv[1], "words"))
		return words(strtoull(argv[2], NULL, 0),
			     strtoull(argv[3], NULL, 0));
	if (argc == 6 && !strcmp(argv[1], "compare"))
		return compare(argv[2], argv[3], argv[4], atoi(argv[5]));
	fputs("usage: decoder kinds | words SEED COUNT |\n"
	      "       decoder compare WORDS MNEMONICS EXPLAINED FIELD\n", stderr);
	return 2;
}
