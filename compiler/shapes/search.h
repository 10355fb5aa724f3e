/* SPDX-License-Identifier: MIT */
/* The operands of BeamSearch. N sentences, K hypotheses of each, V tokens to choose from, L steps at most. */
#ifndef RNNCC_SEARCH_H
#define RNNCC_SEARCH_H

#include "ir/graph.h"

typedef struct BeamSearch {
  int64_t beam, steps, best; /* K, L, and how many hypotheses are returned */
  int64_t run_steps;         /* of a run, at most, the rest in later ones; 0: all in one */
  int64_t end;               /* the token that ends a hypothesis */
  double penalty;            /* a score is divided by its length to this power */
  int n_states;
  const int64_t *axes;   /* [n_states]: along which axis a state has the sentences */
  const Dim *sentences;  /* N */
  const Dim *hypotheses; /* N*K */
  int64_t vocabulary;    /* V */
  const Graph *body;     /* a step, with types and shapes */
} BeamSearch;

/* Infers the body. False after an error. */
bool read_beam_search(Graph *graph, Node *node, BeamSearch *search);

#endif
