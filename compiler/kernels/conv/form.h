/* SPDX-License-Identifier: MIT */
/*
 * Schedules of convolutions in words: an algorithm and its knobs by name, "direct,oc=2,px=14,unroll=2,pass=0,groups=0,
 * tiles=8". A form of a record names every knob; one that --conv gives may leave some open.
 */
#ifndef RNNCC_FORM_H
#define RNNCC_FORM_H

#include "kernels/conv/convolution.h"

/* NULL if it is well formed, else the offending part. */
const char *form_wrong(const char *form);

/* needs: !form_wrong(form) */
const ConvAlgorithm *form_algorithm(const char *form);
/* Sets the knobs that it names; how many they are. */
int form_read(const char *form, ConvKnobs *knobs);

/* Does it name every knob? */
bool form_is_whole(const char *form);

/* Names every knob. */
const char *convolution_form(Arena *arena, const ConvCandidate *candidate);

#endif
