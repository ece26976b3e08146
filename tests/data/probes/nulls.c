// SPDX-License-Identifier: GPL-2.0
// handled SIGSEGV: 500 NULL reads then writes at the same address; and 300 pages written, made PROT_NONE, touched with a handler that unprotects.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
static sigjmp_buf j; static char *m; static int mode;
static void h(int s, siginfo_t *i, void *u) { if (mode) mprotect((void *)((unsigned long)i->si_addr & ~4095ul), 4096, 3); else siglongjmp(j, 1); }
int main() {
  struct sigaction a = {.sa_sigaction = h, .sa_flags = SA_SIGINFO}; sigaction(SIGSEGV, &a, 0); volatile int n = 0;
  for (volatile int i = 0; i < 500; i++) { volatile char *p = (char *)(8192 + i * 4096ul); if (!sigsetjmp(j, 1)) n += *p; if (!sigsetjmp(j, 1)) *p = 1; }
  mode = 1; m = mmap(0, 300 * 4096, 3, 34, -1, 0); volatile char *q = m;
  for (int i = 0; i < 300; i++) q[i * 4096] = 1;
  mprotect(m, 300 * 4096, 0);
  for (int i = 0; i < 300; i++) n += q[i * 4096];
  mprotect(m, 300 * 4096, 1);
  for (int i = 0; i < 300; i++) q[i * 4096] = 2;
  printf("%d\n", n);
}
