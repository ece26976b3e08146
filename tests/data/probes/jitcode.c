// SPDX-License-Identifier: GPL-2.0
// writes code into RWX pages: each page has a function that reads, then writes a fresh data page
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
int main() {
  enum { N = 2000 }; unsigned char *c = mmap(0, N * 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); char *d = mmap(0, N * 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  // mov (%rdi),%al ; movb $1,(%rdi) ; ret
  unsigned char f[] = {0x8a, 0x07, 0xc6, 0x07, 0x01, 0xc3};
  for (int i = 0; i < N; i++) { memcpy(c + i * 4096, f, sizeof f); ((void (*)(char *))(c + i * 4096))(d + i * 4096); }
  puts("ok");
}
