// SPDX-License-Identifier: GPL-2.0
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "identity.h"

/* Notes are in the first page of all files that linkers make. */
#define HEAD	4096

/* Reads memory of a process; tells how much. */
static size_t read_memory(pid_t pid, uint64_t at, void *to, size_t size)
{
	struct iovec here = { .iov_base = to, .iov_len = size };
	struct iovec there = { .iov_base = (void *)at, .iov_len = size };
	ssize_t len = process_vm_readv(pid, &here, 1, &there, 1, 0);

	return len < 0 ? 0 : len;
}

/* The build ID among the notes in `data`; NULL if there is none. */
static const unsigned char *build_id(const unsigned char *data, size_t size, size_t *len)
{
	while (size >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		size_t name, all;

		memcpy(&note, data, sizeof(note));
		name = ((size_t)note.n_namesz + 3) & ~3ul;
		all = sizeof(note) + name + (((size_t)note.n_descsz + 3) & ~3ul);
		if (all > size)
			return NULL;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof("GNU") &&
		    !memcmp(data + sizeof(note), "GNU", sizeof("GNU"))) {
			*len = note.n_descsz;
			return data + sizeof(note) + name;
		}
		data += all;
		size -= all;
	}
	return NULL;
}

/* Writes the build ID of a file that is mapped at `start`; the line ends its `path`. */
static void write_identity(pid_t pid, uint64_t start, const char *path, struct output *output)
{
	unsigned char head[HEAD];
	char record[64 + 4096];
	size_t size = read_memory(pid, start, head, sizeof(head));
	Elf64_Ehdr file;

	if (size < sizeof(file))
		return;
	memcpy(&file, head, sizeof(file));
	if (memcmp(file.e_ident, ELFMAG, SELFMAG) || file.e_ident[EI_CLASS] != ELFCLASS64)
		return;
	for (size_t i = 0; i < file.e_phnum; i++) {
		size_t at = file.e_phoff + i * sizeof(Elf64_Phdr), len;
		const unsigned char *id;
		Elf64_Phdr part;
		int all;

		if (file.e_phoff > size || at + sizeof(part) > size)
			return;
		memcpy(&part, head + at, sizeof(part));
		if (part.p_type != PT_NOTE || part.p_offset > size ||
		    part.p_filesz > size - part.p_offset)
			continue;
		id = build_id(head + part.p_offset, part.p_filesz, &len);
		if (!id || len > 32)
			continue;
		all = 0;
		while (len--)
			all += sprintf(record + all, "%02x", *id++);
		all += snprintf(record + all, sizeof(record) - all, " %.*s\n",
				(int)strcspn(path, "\n"), path);
		if (all < (int)sizeof(record))
			output_data(output, FT_BUILD_IDS, pid, record, all);
		return;
	}
}

void identity_write(pid_t pid, const char *maps, struct output *output)
{
	/* Not by sscanf(), which looks for the end of all the text at each line. */
	for (const char *line = maps; *line; line = strchrnul(line, '\n'), line += !!*line) {
		char *at;
		uint64_t start = strtoul(line, &at, 16), offset;

		/* The end and the permissions; then the offset, the device and the inode. */
		at += strcspn(at, " \n");
		at += strspn(at, " -rwxps");
		offset = strtoul(at, &at, 16);
		at += strcspn(at, "/\n");
		if (*at == '/' && at[-1] == ' ' && !offset)
			write_identity(pid, start, at, output);
	}
}
