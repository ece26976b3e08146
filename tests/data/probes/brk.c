// An allocator by sbrk(3), or malloc(3): 16 MiB in blocks of 64 KiB, six times, given back each time.
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
  static char *b[256];
  for (int r = 0; r < 6; r++) {
    for (int i = 0; i < 256; i++) b[i] = memset(argc > 2 ? malloc(65536) : sbrk(65536), 1, 65536);
    if (argc > 2) for (int i = 256; i--;) free(b[i]);
    else sbrk(-256 * 65536);
  }
}
