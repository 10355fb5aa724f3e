/* SPDX-License-Identifier: MIT */
/* What shape inference finds of an If, Loop or Scan: how often it runs, and which dims it sets. shapes/control.h says
 * what goes into a body and comes out. */
#ifndef RNNCC_IR_CONTROL_H
#define RNNCC_IR_CONTROL_H

#include "ir/graph.h"

/* A dimension that the schedule sets: an extent of an If's output, by the branch taken; or of a carried value that
 * grows in a loop. */
typedef struct Growth {
  const DimSymbol *symbol;
  const Dim *value[2]; /* If: after each branch; a loop: before it, and at the end of each iteration */
} Growth;

enum { MAX_ITERATIONS = INT32_MAX }; /* of an unbounded loop */

typedef struct Control {
  bool is_loop;  /* Loop or Scan; else If */
  int n_leading; /* inputs of a loop's body before what is carried: 2 of Loop, 0 of Scan */
  int n_carried, n_scanned, n_collected;
  int first_carried;        /* of the node's inputs */
  const DimSymbol *counter; /* of a loop: the iteration, from 0 */
  const Dim *trip;        /* upper bound of the iterations; NULL: node input 0, or, if that is absent too, unbounded */
  int64_t most;           /* iterations of any run, at most; MAX_ITERATIONS: nothing bounds them */
  bool conditional;       /* the body may end it */
  const DimSymbol *count; /* of a loop: iterations run */
  const DimSymbol *of; /* of a loop that goes back over another one: that one's counter, trip - 1 - its own; or NULL */
  bool *backwards;     /* [n_scanned + n_collected] of Scan */
  int n_growths, growth_capacity;
  Growth *growths;
} Control;

/* Does a Scan go over this one of what it scans, and then of what it collects, from its end? */
static inline bool scans_backwards(const Control *control, int k) {
  return control->backwards && control->backwards[k];
}

#endif
