/* SPDX-License-Identifier: MIT */
/* Any bytes as a .npy file: it is read, and all elements are there, or refused. */
#include "../support/read_or_refuse.h"
#include "quantise/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_tensor(Arena *arena, FileBytes bytes) {
  /* A copy of its own: reading past its end is found. */
  Tensor tensor =
      npy_read((FileBytes){arena_copy(arena, bytes.data, bytes.size), bytes.size}, RNNCC_F32, LOCATION_FILE("x.npy"));
  int64_t count = tensor_count(&tensor);
  size_t size = dtype_size(tensor.dtype);
  volatile uint8_t sum = 0;
  for (size_t i = 0; i < (size_t)count * size; i++) sum = (uint8_t)(sum + ((const uint8_t *)tensor.data)[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  read_or_refuse(read_tensor, (FileBytes){.data = data, .size = size});
  return 0;
}
