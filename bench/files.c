// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <unistd.h>

#include "files.h"
#include "json.h"
#include "memory.h"

/* More than any file with a setting has; a longer text is cut. */
#define TEXT_MAX	65536

static bool read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t got = -1;

	if (fd < 0)
		return false;
	while (len < size - 1) {
		got = read(fd, text + len, size - 1 - len);
		if (got <= 0)
			break;
		len += got;
	}
	close(fd);
	text[len] = '\0';
	return got >= 0;
}

void files_print(char **patterns, FILE *out)
{
	static char text[TEXT_MAX];
	const char *comma = "";
	int flags = 0;
	glob_t found;

	fprintf(out, "{\"schema\":1,\"page_size\":%zu,\"memory_available\":%lu,\"files\":{",
		page_size(), memory_available());
	for (; *patterns; patterns++) {
		if (!glob(*patterns, flags, NULL, &found) || flags)
			flags = GLOB_APPEND;
	}
	for (size_t i = 0; flags && i < found.gl_pathc; i++) {
		if (!read_text(found.gl_pathv[i], text, sizeof(text)))
			continue;
		fputs(comma, out);
		json_string(out, found.gl_pathv[i]);
		fputc(':', out);
		json_string(out, text);
		comma = ",";
	}
	if (flags)
		globfree(&found);
	fputs("}}\n", out);
}
