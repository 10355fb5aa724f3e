/* SPDX-License-Identifier: MIT */
/* --train: that a network is trained, which of its weights are, and by which loss. */
#ifndef RNNCC_TRAINING_H
#define RNNCC_TRAINING_H

#include <stdbool.h>

#include "support/arena.h"

/* `takes`: weights of these names are trained, else they are not. */
typedef struct TrainingRule {
  const char *pattern; /* with * and ? */
  bool takes;
} TrainingRule;

typedef struct Training {
  bool wanted;
  const char *text; /* of --train, as given; NULL: no patterns */
  const char *loss; /* --loss, an output's name; NULL: not given */
  bool outer_loss;  /* the program computes the loss of the outputs, and gives their gradients */
  int count;
  TrainingRule *list; /* of several that fit a name, the last one holds; of none the name is trained if the first one
                       * does not take, or there is none */
} Training;

/* Reads `PATTERN,!PATTERN,...`; NULL: all weights. Returns what was expected; NULL: it is right. */
const char *training_parse(Arena *arena, const char *text, Training *training);

/* Is the weight of that name trained? With outer_loss: has the input of that name a gradient? */
bool training_takes(const Training *training, const char *name);

#endif
