/* SPDX-License-Identifier: MIT */
/*
 * The peak speed of a core of this machine. cache_bandwidth ISA THREADS... prints JSON: for each number of threads that
 * run at once, a core's GFLOP/s of multiply-adds with the ISA's vectors (speed.h), its 10^9 operations a second of such
 * ones of 8-bit integers, by matrices in registers if there are any, and its GB/s of reading a buffer of its own over
 * and over, for buffers of 16 KB to 64 MB.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "speed.h"

enum { MIN_BYTES = 16 << 10, MAX_BYTES = 64 << 20 };

/* False if that many threads cannot be had. */
static bool measure(const char *isa, int threads) {
  double gflops = speed_multiply_add(isa, threads);
  if (!(gflops > 0)) return false;
  double dots = speed_dot_products(isa, threads), matrices = strcmp(isa, "avx512") ? 0 : speed_matrix_products(threads);
  printf("{\"threads\": %d, \"gflops\": %.1f, \"int8_gops\": %.1f, \"read\": [", threads, gflops,
         matrices > dots ? matrices : dots);
  for (size_t bytes = MIN_BYTES; bytes <= MAX_BYTES; bytes *= 2) {
    double forward = speed_read(isa, threads, bytes, false), alternating = speed_read(isa, threads, bytes, true);
    if (!(forward > 0 && alternating > 0)) return false;
    printf("%s{\"bytes\": %zu, \"forward\": %.1f, \"alternating\": %.1f}", bytes == MIN_BYTES ? "" : ", ", bytes,
           forward, alternating);
  }
  printf("]}");
  return true;
}

static int usage(void) {
  fprintf(stderr, "usage: cache_bandwidth ISA THREADS...   (ISA: as in speed.h; 1 to 1024 threads each)\n");
  return 2;
}

int main(int count, char **words) {
  if (count < 3) return usage();
  const char *isa = words[1];
  printf("{\"isa\": \"%s\", \"cores\": [", isa);
  for (int i = 2; i < count; i++) {
    int threads = (int)strtol(words[i], NULL, 10);
    if (threads < 1) return usage();
    if (i > 2) printf(", ");
    if (!measure(isa, threads))
      return fprintf(stderr, "cache_bandwidth: no %s, no %d threads, or no memory\n", isa, threads), 4;
  }
  printf("]}\n");
  return 0;
}
