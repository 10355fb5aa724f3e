/* SPDX-License-Identifier: MIT */
/* Which floats are integers of 8 bits, so that a conversion neither cuts nor wraps. */
#ifndef RNNCC_WHOLE_NUMBERS_H
#define RNNCC_WHOLE_NUMBERS_H

#include "ir/graph.h"

/* Is each element that the Cast to u8 or i8 reads an integer of that type, or NaN? QuantizeLinear writes it so. */
bool fits_byte(const Node *cast);

#endif
