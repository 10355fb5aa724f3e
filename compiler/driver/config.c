/* SPDX-License-Identifier: MIT */
#include "driver/config.h"

#include "machine/targets.h"
#include "schedules/database.h"

static bool any_multiplies_bf16(const Options *options) {
  for (int i = 0; i < options->n_targets; i++)
    if (target_multiplies_bf16(options->targets[i].target)) return true;
  return false;
}

const Config *config_of(Arena *arena, const Options *options, const PlannedTarget *planned) {
  Config *config = ARENA_NEW(arena, Config);
  *config = (Config){.target = planned->target,
                     .machine = &planned->machine,
                     .records = database_open(arena, planned->target, options->schedules),
                     .rnn_schedule = options->variant,
                     .conv_schedule = options->conv_form,
                     .precision = options->precision,
                     .bf16_products = any_multiplies_bf16(options),
                     .training = options->training,
                     .layout_search = options->layout_search,
                     .no_winograd = options->no_winograd,
                     .seed = options->seed,
                     .mutable_weights = options->weights == WEIGHTS_MUTABLE,
                     .edge = options->profile == PROFILE_EDGE};
  return config;
}
