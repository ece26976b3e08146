/* SPDX-License-Identifier: GPL-2.0 */
/* Who calls memset, malloc and read of a C library without frame pointers? */
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <fcntl.h>
#include <unistd.h>
#define N __attribute__((noinline, noclone))
N static void clear_cache(char *p, size_t n) { memset(p, 1, n); __asm__ volatile("" ::: "memory"); }
N static void *make_nodes(int n) { void *f = 0; for (int i = 0; i < n; i++) { void **x = malloc(1000); x[0] = f; f = x; } __asm__ volatile("" ::: "memory"); return f; }
N static long load_file(int fd, char *b, size_t n) { long r = read(fd, b, n); __asm__ volatile("" ::: "memory"); return r; }
N static void work(char **v) { char *p = malloc(32 << 20), *b = malloc(16 << 20); clear_cache(p, 32 << 20); make_nodes(20000); load_file(open(v[1], O_RDONLY), b, 16 << 20); __asm__ volatile("" ::: "memory"); }
int main(int c, char **v) { work(v); puts("ok"); return 0; }
