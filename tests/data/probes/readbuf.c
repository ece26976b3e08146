// SPDX-License-Identifier: GPL-2.0
// read(2) of a cached file into fresh memory, 64 MiB; compute() is the user's function
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <unistd.h>
__attribute__((noinline)) static long load_block(int fd, char *b, size_t n) { long s = 0; ssize_t r; lseek(fd, 0, 0); while (n && (r = read(fd, b, n > 1 << 20 ? 1 << 20 : n)) > 0) { s += r; b += r; n -= r; } return s; }
int main(int c, char **v) { int fd = open(v[1], O_RDONLY); char *b = malloc(32 << 20); printf("%ld\n", load_block(fd, b, 32 << 20)); }
