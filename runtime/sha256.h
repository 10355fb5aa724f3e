/* SPDX-License-Identifier: MIT */
/* SHA-256 (FIPS 180-4), fed in pieces. The compiler states with it what a module was made of, and a module may check
 * its weights. */
#ifndef RNNCC_SHA256_H
#define RNNCC_SHA256_H

#include <stddef.h>
#include <stdint.h>

#include "names.h"

enum { SHA256_BYTES = 32, SHA256_HEX_BYTES = 65 };

typedef struct Sha256 {
  uint32_t state[8];
  uint8_t block[64]; /* the first `total % 64` bytes wait for the rest of their block */
  uint64_t total;    /* bytes fed */
} Sha256;

RUNTIME_LOCAL Sha256 sha256_new(void);
RUNTIME_LOCAL void sha256_add(Sha256 *hash, const void *data, size_t bytes);
RUNTIME_LOCAL void sha256_end(Sha256 *hash, uint8_t digest[SHA256_BYTES]);

/* All at once. */
RUNTIME_LOCAL void sha256(const void *data, size_t bytes, uint8_t digest[SHA256_BYTES]);
/* Lower-case hexadecimal digits and a NUL. */
RUNTIME_LOCAL void sha256_hex(const uint8_t digest[SHA256_BYTES], char hex[SHA256_HEX_BYTES]);

#endif
