// SPDX-License-Identifier: GPL-2.0
// False doubles: anonymous pages are read and unmapped; a file is mapped privately over the same
// addresses, fault-around maps 16 pages by one read, and 15 are written for the first time.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int c, char **v) {
  int fd = open(v[1], O_RDONLY), n = 1600; volatile char *p = mmap(0, n * 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); long s = 0;
  char *b = malloc(1 << 16); for (int i = 0; i < n; i += 16) s += read(fd, b, 1 << 16); // cached
  for (int i = 0; i < n; i++) s += p[i * 4096];
  munmap((void *)p, n * 4096);
  volatile char *q = mmap((void *)p, n * 4096, 3, MAP_PRIVATE | MAP_FIXED, fd, 0);
  for (int i = 0; i < n; i += 16) s += q[i * 4096];        // 100 read faults, each maps 16 pages
  for (int i = 0; i < n; i++) if (i % 16) q[i * 4096] = 1;  // 1,500 first writes, none after a read
  printf("%ld\n", s);
}
