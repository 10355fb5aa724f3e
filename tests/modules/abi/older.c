/* SPDX-License-Identifier: MIT */
/* A module of before there were pools, as far as an application sees: today's, linked in under another prefix, whose
 * table ends before them. */
#include <stddef.h>
#include <string.h>

#include "rnncc.h"

const rnncc_api *of_module_query(uint32_t abi, const char **why);

const rnncc_api *rnncc_module_query(uint32_t abi, const char **why) {
  static rnncc_api older;
  static const rnncc_api *networks[] = {&older};
  const rnncc_api *today = of_module_query(abi, why);
  if (!today) return NULL;
  memcpy(&older, today, offsetof(rnncc_api, pool_create));
  older.struct_size = offsetof(rnncc_api, pool_create);
  older.networks = networks;
  return &older;
}
