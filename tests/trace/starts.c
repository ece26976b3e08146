// SPDX-License-Identifier: GPL-2.0
/*
 * "fork" starts a program again and again, and writes its memory meanwhile, so that each fork
 * costs copies; "spawn" does so by posix_spawn(3). "read FILE" reads each page of a mapped file,
 * "write FILE" writes each.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define STARTS	20
#define SIZE	(500 * 4096)

static char written[SIZE];

static int read_all(const char *file)
{
	const int fd = open(file, O_RDONLY);
	const off_t size = lseek(fd, 0, SEEK_END);
	const char *map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	int sum = 0;

	if (map == MAP_FAILED)
		return 1;
	for (off_t at = 0; at < size; at += 4096)
		sum += map[at];
	return sum != 0;
}

static int write_all(const char *file)
{
	const int fd = open(file, O_RDWR);
	const off_t size = lseek(fd, 0, SEEK_END);
	char *map = mmap(NULL, size, PROT_WRITE, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		return 1;
	for (off_t at = 0; at < size; at += 4096)
		map[at] = 1;
	return 0;
}

int main(int argc, char **argv)
{
	char *const command[] = { "/bin/true", NULL };
	const int spawn = argc > 1 && !strcmp(argv[1], "spawn");

	if (argc > 2)
		return strcmp(argv[1], "write") ? read_all(argv[2]) : write_all(argv[2]);
	for (int n = 0; n < STARTS; n++) {
		pid_t pid;

		memset(written, n, SIZE);
		if (spawn && posix_spawn(&pid, command[0], NULL, NULL, command, NULL))
			return 1;
		if (!spawn) {
			pid = fork();
			if (pid == 0) {
				execv(command[0], command);
				_exit(127);
			}
		}
		if (waitpid(pid, NULL, 0) != pid)
			return 1;
	}
	return 0;
}
