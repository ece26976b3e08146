// Reserved by PROT_NONE: 2,048 pages that a handler of SIGSEGV permits one by one, 1,024 that it never does; 256 of r--, which only fault.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
static sigjmp_buf j; static volatile int allow = 1;
static void h(int s, siginfo_t *i, void *u) { if (allow) mprotect((void *)((unsigned long)i->si_addr & ~4095ul), 4096, 3); else siglongjmp(j, 1); }
int main() {
  struct sigaction a = {.sa_sigaction = h, .sa_flags = SA_SIGINFO}; sigaction(SIGSEGV, &a, 0);
  volatile char *m = mmap(0, 3328 * 4096, 0, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  mprotect((void *)(m + 3072 * 4096), 256 * 4096, 1);
  for (int i = 0; i < 2048; i++) m[i * 4096] = 1;
  allow = 0;
  for (volatile int i = 2048; i < 3328; i++) if (!sigsetjmp(j, 1)) m[i * 4096] = 1;
}
