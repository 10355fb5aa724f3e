/* SPDX-License-Identifier: MIT */
/*
 * The knobs of a recurrent layer: chosen by cost, measured by tuning, forced by tests. All variants give the same
 * outputs except for rounding, and each one the same bits on any number of threads.
 */
#ifndef RNNCC_VARIANT_H
#define RNNCC_VARIANT_H

#include "ir/schedule.h"

/* Where the products with W run (DeepCPU, 5.1: a time-independent phase, or fused into the time-dependent one). */
typedef enum InputProduct {
  INPUT_AHEAD,    /* one product for many steps, before them */
  INPUT_WITH_STEP /* W x and R h of a step in one sweep over panels that hold both */
} InputProduct;

/* Each knob by its name, or by its place. */
typedef union RecurrentVariant {
  Knobs knobs;
  struct {
#define KNOB(name, min, max, words) int name;
#include "kernels/recurrent/knobs.def"
  };
} RecurrentVariant;

/* For schedule_parse(): there is one kind. A text may leave knobs open. */
extern const ScheduleKind recurrent_kind;
extern const ScheduleKind *const recurrent_kinds[];

/* With every knob. */
const char *variant_text(Arena *arena, const RecurrentVariant *variant);

#endif
