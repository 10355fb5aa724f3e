/* SPDX-License-Identifier: MIT */
#ifndef RNNCC_DRIVER_BUNDLE_H
#define RNNCC_DRIVER_BUNDLE_H

#include "driver/options.h"

/* Are the verb's operands networks? Of inspect and tune they may be one model. */
bool bundle_is_meant(Verb verb, char **words, int count);

/* The operands become the options' models; settings that begin with a network's name are its own. */
void bundle_networks(Options *options, char **words, int count);

/* What one network's files have that several have not, and what has no default. */
void bundle_check(const Options *options);

#endif
