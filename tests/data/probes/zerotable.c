// SPDX-License-Identifier: GPL-2.0
// reads 64 MiB of memory that nobody writes (a sparse table)
#include <stdio.h>
#include <stdlib.h>
int main(){ volatile char *p=calloc(64<<20,1); long s=0; for(size_t i=0;i<64<<20;i+=4096) s+=p[i]; printf("%ld\n",s); }
