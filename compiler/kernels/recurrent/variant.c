/* SPDX-License-Identifier: MIT */
#include "kernels/recurrent/variant.h"

#include <assert.h>

static const char *const input_words[] = {[INPUT_AHEAD] = "ahead", [INPUT_WITH_STEP] = "step"};

static const ScheduleKnob knobs[] = {
#define KNOB(name, min, max, words) {#name, min, max, words},
#include "kernels/recurrent/knobs.def"
    {NULL, 0, 0, NULL}};
static_assert(sizeof knobs / sizeof *knobs == sizeof(RecurrentVariant) / sizeof(int) + 1, "a knob for each value");

const ScheduleKind recurrent_kind = {NULL, knobs};
const ScheduleKind *const recurrent_kinds[] = {&recurrent_kind, NULL};

const char *variant_text(Arena *arena, const RecurrentVariant *variant) {
  return schedule_print(arena, &recurrent_kind, &variant->knobs);
}
