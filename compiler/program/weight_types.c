/* SPDX-License-Identifier: MIT */
/* How much of the weights is of which element type, as `rnncc inspect` and `rnnrun inspect` print it. */
#include "ir/narrow.h"
#include "program/program.h"
#include "support/text.h"

/* Of numbers of 4 bits, two are in a byte. */
static DType type_of(const Value *weights) { return weights->narrow ? weights->narrow->dtype : weights->dtype; }

static int64_t bytes_of_type(const Program *program, DType dtype) {
  int64_t bytes = 0;
  for (int i = 0; i < program->n_weights; i++)
    if (type_of(program->weights[i]) == dtype) bytes += value_max_bytes(program->weights[i]);
  return bytes;
}

const char *weights_by_type(const Program *program) {
  Text text = text_new(program->arena);
  for (const DType *dtype = all_dtypes; *dtype != RNNCC_NONE; dtype++) {
    int64_t bytes = bytes_of_type(program, *dtype);
    if (!bytes) continue;
    text_add(&text, "%s%lld%s of %s", text.length ? ", " : "", (long long)bytes, text.length ? "" : " bytes",
             dtype_name(*dtype));
  }
  return text.length ? text.data : "";
}
