/* SPDX-License-Identifier: MIT */
/* A CPU's identity, and what a table knows of its microarchitecture: ports, latency, bandwidths. */
#ifndef RNNCC_MICROARCHITECTURE_H
#define RNNCC_MICROARCHITECTURE_H

#include <stdint.h>

#include "support/arena.h"

enum { VECTOR_WIDTHS = 3 }; /* of 16, 32 and 64 bytes */

/* A core's. Bytes are those that it reads in a cycle while all cores read, with the widest vectors. */
typedef struct Microarchitecture {
  const char *name;
  double ghz;                          /* usual, with all cores at work */
  double all_cores;                    /* that over the maximum that the system tells */
  double fma[VECTOR_WIDTHS];           /* multiply-adds a cycle; without such an instruction, both of its parts */
  double fma_latency;                  /* cycles between two additions to the same sum */
  double loads;                        /* vectors a cycle */
  double l1_bytes, l2_bytes, l3_bytes; /* a cycle */
  double dram_gbps, barrier_ns;        /* as in Machine */
} Microarchitecture;

/* This CPU's; NULL if the table does not have it. */
const Microarchitecture *microarchitecture_here(void);
/* signature: eax of cpuid's leaf 1. */
const Microarchitecture *microarchitecture_of_x86(const char *vendor, uint32_t signature);
const Microarchitecture *microarchitecture_of_arm(uint64_t midr);

const Microarchitecture *microarchitecture_at(int index); /* NULL past the end */

/* The highest clock that the system tells; 0 if it does not. */
double cpu_most_ghz(void);

/* Identifies the CPU model: name, vendor, family, model and stepping. Printable, without quotes and backslashes. */
const char *machine_cpu_name(Arena *arena);

#endif
