/* SPDX-License-Identifier: MIT */
/* The one exported symbol: it hands out the table of functions if this process can use them. */
#include "context.h"

static const rnncc_api api = {
    .abi = RNNCC_ABI,
    .struct_size = sizeof(rnncc_api),
    .info = &rnncc_module.info,
    .model_create = model_create,
    .model_destroy = model_destroy,
    .model_threads = model_threads,
    .context_size = context_size,
    .context_create = context_create,
    .context_destroy = context_destroy,
    .warmup = context_warmup,
    .run = context_run,
    .state_reset = context_state_reset,
    .state_get = context_state_get,
    .state_set = context_state_set,
    .profile = context_profile,
    .last_error = context_last_error,
    .model_narrowed = model_narrowed,
};

#define LACKING(what) MESSAGE("this module needs " what ", which this CPU or its operating system lacks")

static const char *const lacking[] = {
#define CPU_FEATURE(name, title, flags) LACKING(title " (" flags ")"),
#include "cpu.def"
};

static const char *reason_against(uint32_t abi) {
  if (abi != RNNCC_ABI) return MESSAGE("this module and the application were built for different versions of rnncc.h");
  uint32_t missing = rnncc_module.cpu_features & ~cpu_features();
  if (!missing) return NULL;
  for (int i = CPU_FEATURES; i-- > 0;)
    if (missing & 1u << i) return lacking[i];
  return LACKING("an instruction set unknown to this runtime");
}

const rnncc_api *rnncc_module_query(uint32_t abi, const char **why) {
  const char *reason = reason_against(abi);
  if (why) *why = reason;
  return reason ? NULL : &api;
}
