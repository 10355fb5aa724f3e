/* SPDX-License-Identifier: MIT */
/*
 * A body's gradient is a body: it computes the body once more, of what the branch or the iteration began with, and goes
 * back through that by the rules of its operators, which may be control flow again.
 */
#ifndef RNNCC_BODY_BACK_H
#define RNNCC_BODY_BACK_H

#include "differentiate/backwards.h"
#include "differentiate/over_turns.h"

/* An input of a gradient's body, and what it stands for outside. */
typedef struct Slot {
  Value *inside, *outside;
  Value *kept; /* of the loop's body: the loop collects it, if it is read; then that is `outside`. Else NULL */
  bool backwards;
  bool multiplied; /* outside: a part of a gradient that is of all turns reads it */
} Slot;

typedef struct Slots {
  int count, capacity;
  Slot *list;
} Slots;

/* A body's gradient. */
typedef struct Back {
  const Gradient *g;
  const Graph *of;
  Formula f;                    /* in its own body */
  Value **arguments, **results; /* inputs and outputs of the copy of the body that it is of */
  Backwards way;                /* over the copy */
  Slots carried, scanned, captured;
  TurnParts parts;
  int n_collected; /* outputs behind those that are carried */
  bool *backwards; /* by such output */
} Back;

Back *back_new(const Gradient *g, const Graph *of);

/* ---- inputs of the gradient's body: each of these returns it ---- */

/* Of a value outside, which inside is like `like`. */
Value *capture(Back *back, const Value *like, Value *outside);
Value *carry(Back *back, const Value *like, Value *first);
/* Slices of `all`, which the loop goes through in its own order or `backwards`. */
Value *scan(Back *back, const Value *like, Value *all, bool backwards);
/* What the loop's body had in each iteration. */
Value *keep(Back *back, Value *of_body);

/* The slot with this input; NULL: none. */
Slot *slot_of(const Slots *slots, const Value *inside);
bool is_read_in(const Graph *body, const Value *input);
/* Appends the slots' inputs to the body's; outside: what they stand for, by input. */
void list_inputs(const Back *back, const Slots *slots, Value **outside);

/* ---- the copy ---- */

/* What the body's input is, the argument is: also where only shape rules know it. */
void give(Back *back, int input, Value *argument);
void capture_all(Back *back);
/* Makes the copy. What of it is trained: of any iteration. needs: all arguments. */
void begin_way(Back *back);
/* Adds to the gradient of an output. */
void go_back(Back *back, int output, Value *d);
/* The gradient of an input; the first: or NULL. */
Value *gradient_of(const Back *back, int input);
Value *gradient_or_zeros(const Back *back, int input);
void put_out(const Back *back, Value *value);

#endif
