/* SPDX-License-Identifier: MIT */
#include "differentiate/body_back.h"

#include "differentiate/flow.h"
#include "ir/bodies.h"
#include "support/list.h"

/* ---- inputs of the gradient's body ---- */

static Value *add_slot(const Back *back, Slots *slots, Slot slot, const Value *like) {
  Graph *body = back->f.graph;
  slot.inside = graph_value_like(body, like->name, back->f.where, like);
  slot.inside->is_input = true;
  *LIST_APPEND(body->arena, body->inputs, body->n_inputs) = slot.inside;
  *LIST_ADD(body->arena, slots->list, slots->count, slots->capacity) = slot;
  return slot.inside;
}

Value *capture(Back *back, const Value *like, Value *outside) {
  return add_slot(back, &back->captured, (Slot){.outside = outside}, like);
}

Value *carry(Back *back, const Value *like, Value *first) {
  return add_slot(back, &back->carried, (Slot){.outside = first}, like);
}

Value *scan(Back *back, const Value *like, Value *all, bool backwards) {
  return add_slot(back, &back->scanned, (Slot){.outside = all, .backwards = !backwards}, like);
}

Value *keep(Back *back, Value *of_body) {
  return add_slot(back, &back->scanned, (Slot){.kept = of_body, .backwards = true}, of_body);
}

Slot *slot_of(const Slots *slots, const Value *inside) {
  for (int i = 0; i < slots->count; i++)
    if (slots->list[i].inside == inside) return &slots->list[i];
  return NULL;
}

bool is_read_in(const Graph *body, const Value *input) {
  for (int n = 0; n < body->n_nodes; n++)
    for (int i = 0; i < body->nodes[n]->n_inputs; i++)
      if (body->nodes[n]->inputs[i] == input) return true;
  for (int i = 0; i < body->n_outputs; i++)
    if (body->outputs[i] == input) return true;
  return false;
}

void list_inputs(const Back *back, const Slots *slots, Value **outside) {
  Graph *body = back->f.graph;
  for (int i = 0; i < slots->count; i++) {
    outside[body->n_inputs] = slots->list[i].outside;
    body->inputs[body->n_inputs++] = slots->list[i].inside;
  }
}

/* ---- the copy ---- */

Back *back_new(const Gradient *g, const Graph *of) {
  Arena *arena = g->f->graph->arena;
  Back *back = ARENA_NEW(arena, Back);
  back->g = g;
  back->of = of;
  back->f = (Formula){body_new(g->f->graph, of->name), g->node->name, g->node->where};
  back->arguments = ARENA_ARRAY(arena, Value *, of->n_inputs);
  back->results = ARENA_ARRAY(arena, Value *, of->n_outputs);
  return back;
}

void give(Back *back, int input, Value *argument) {
  const Value *of = back->of->inputs[input];
  argument->elements = of->elements;
  argument->divisors = of->divisors;
  argument->interval = of->interval;
  back->arguments[input] = argument;
}

void capture_all(Back *back) {
  const Node *node = back->g->node;
  for (int i = node->n_captures; i >= 1; i--) {
    int inner = back->of->n_inputs - i;
    give(back, inner, capture(back, back->of->inputs[inner], node->inputs[node->n_inputs - i]));
  }
}

void begin_way(Back *back) {
  Graph *body = back->f.graph;
  const bool *trained = body_trained(back->g->node, back->of, back->g->wanted);
  body_append_inferred(body, back->of, back->arguments, back->results);
  body->outputs = back->results;
  body->n_outputs = back->of->n_outputs; /* until the gradients are known: backwards_new numbers what is in the graph */
  back->way = backwards_new(body);
  for (int i = 0; i < back->of->n_inputs; i++)
    if (back->arguments[i]->dtype == RNNCC_F32)
      back->way.trained[back->arguments[i]->id] = trained[back->of->inputs[i]->id];
  mark_trained(body, back->way.trained);
  body->n_outputs = 0;
  body->outputs = NULL;
}

void go_back(Back *back, int output, Value *d) { add_gradient(&back->way, &back->f, back->results[output], d); }
Value *gradient_of(const Back *back, int input) { return back->way.d[back->arguments[input]->id]; }

Value *gradient_or_zeros(const Back *back, int input) {
  Value *d = gradient_of(back, input);
  return d ? d : zeros_like(&back->f, back->arguments[input]);
}

void put_out(const Back *back, Value *value) {
  Graph *body = back->f.graph;
  *LIST_APPEND(body->arena, body->outputs, body->n_outputs) = value;
}
