/* SPDX-License-Identifier: MIT */
/* Files of weights: an 8-byte length, a JSON object of that many bytes, then the data. */
#ifndef RNNRUN_SAFETENSORS_H
#define RNNRUN_SAFETENSORS_H

#include "support.h"

typedef struct SafeTensor {
  char *name;
  rnncc_dtype dtype;
  int rank;
  int64_t shape[RNNCC_MAX_RANK];
  size_t bytes;
  const unsigned char *data; /* in the file's bytes; aligned as the file has it */
} SafeTensor;

typedef struct SafeTensors {
  unsigned char *file;
  SafeTensor *list; /* in the order of their data */
  int count;
} SafeTensors;

/* Fails, naming the file and the place, if it is not whole, has a type that rnncc has not, or bytes of data that are of
 * two tensors or of none. */
SafeTensors safetensors_read(const char *path);
void safetensors_free(SafeTensors *tensors);

#endif
