/* SPDX-License-Identifier: MIT */
/* What --conv forces: "direct", or "direct,oc=2,px=14": an algorithm, and knobs of its schedules by name. */
#ifndef RNNCC_FORM_H
#define RNNCC_FORM_H

#include <stdbool.h>
#include <stdint.h>

/* NULL if it is well formed, else the offending part. */
const char *form_wrong(const char *form);
/* Is it of this algorithm? No form is of none. */
bool form_is_of(const char *form, const char *algorithm);
/* The knob's value; `otherwise` if the form is NULL or does not say. */
int64_t form_knob(const char *form, const char *knob, int64_t otherwise);

#endif
