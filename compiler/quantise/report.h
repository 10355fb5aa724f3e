/* SPDX-License-Identifier: MIT */
#ifndef RNNCC_QUANTISE_REPORT_H
#define RNNCC_QUANTISE_REPORT_H

#include "ir/op.h"
#include "quantise/layers.h"
#include "quantise/samples.h"
#include "support/text.h"

/* The layers, with a bar for the error of each alone. recurrent: what recurrent layers multiply. samples NULL: there is
 * no data. `error`: of all that is chosen. */
Text layer_table(const Layers *layers, RecurrentProducts recurrent, const Samples *samples, double error);

/* The same as a picture. */
Text layer_picture(const Layers *layers);

#endif
