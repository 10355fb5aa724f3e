/* SPDX-License-Identifier: MIT */
/* What a host asks for when it makes a model or a pool. */
#include "context.h"
#include "fiber.h"
#include "memory.h"

#define LEAST_BYTES (offsetof(rnncc_options, threads) + sizeof(int32_t))

/* What is wrong with them; NULL: nothing. */
static const char *mistake(const rnncc_options *options) {
  if (options->threads < 0) return "options.threads is negative";
  if (options->pool && options->pool_of) return "options.pool and options.pool_of are both given; expected one of them";
  if (options->by_steps && !options->parallel_for && !options->pool)
    return "options.by_steps is set without a parallel_for that it is about";
  return NULL;
}

rnncc_status options_read(const rnncc_options *given, rnncc_options *own, const char **why) {
  *own = (rnncc_options){.struct_size = sizeof *own};
  if (!given) return RNNCC_OK;
  if (given->struct_size < LEAST_BYTES)
    return refused(RNNCC_ERROR_ARGUMENT, "options.struct_size is not set; expected sizeof(rnncc_options)", why);
  memcpy(own, given, given->struct_size < sizeof *own ? given->struct_size : sizeof *own);
  if (mistake(own)) return refused(RNNCC_ERROR_ARGUMENT, mistake(own), why);
  if (own->by_steps && !HAS_FIBERS)
    return refused(RNNCC_ERROR_UNSUPPORTED, "options.by_steps is for x86-64, AArch64 and 64-bit RISC-V only", why);
  return RNNCC_OK;
}
