/* SPDX-License-Identifier: MIT */
/* BeamSearch. Its body sees all hypotheses of all sentences as one batch: K entries where the node has one. */
#include <math.h>

#include "ir/bodies.h"
#include "shapes/control.h"
#include "shapes/search.h"
#include "shapes/shape.h"

static bool is_in(const Node *node, AttributeName name, int64_t least, int64_t most) {
  int64_t given = node_int(node, name);
  if (given >= least && given <= most) return true;
  return shape_error(node, "expected `%s` from %lld to %lld, found %lld", attribute_name(name), (long long)least,
                     (long long)most, (long long)given);
}

/* Limits that keep every tensor of the search small beside the network's. */
enum { MAX_BEAM = 1024, MAX_STEPS = 65536 };

static bool read_numbers(const Node *node, BeamSearch *s) {
  if (!is_in(node, ATTR_beam_size, 1, MAX_BEAM) || !is_in(node, ATTR_max_length, 1, MAX_STEPS)) return false;
  s->beam = node_int(node, ATTR_beam_size);
  s->steps = node_int(node, ATTR_max_length);
  if (!is_in(node, ATTR_n_best, 1, s->beam) || !is_in(node, ATTR_steps, 0, s->steps)) return false;
  s->run_steps = node_int(node, ATTR_steps);
  s->best = node_int(node, ATTR_n_best);
  s->end = node_int(node, ATTR_end_token);
  s->penalty = node_float(node, ATTR_length_penalty);
  return isfinite(s->penalty) || shape_error(node, "`length_penalty` must be finite");
}

static bool read_axes(Graph *graph, const Node *node, BeamSearch *s) {
  const Attribute *given = node_attribute(node, ATTR_state_axes);
  int64_t *axes = ARENA_ARRAY(graph->arena, int64_t, s->n_states + 1);
  if (given && given->count != (size_t)s->n_states)
    return shape_error(node, "expected %d entries of `state_axes`, one a state, found %zu", s->n_states, given->count);
  for (int k = 0; k < s->n_states; k++) {
    int axis = check_axis(node, "an entry of state_axes", given ? given->ints[k] : 0, node->inputs[1 + k]->rank);
    if (axis < 0) return false;
    axes[k] = axis;
    if (!same_dim(node->inputs[1 + k]->shape[axis], s->sentences))
      return shape_error(node, "axis %d of state %s must be as long as input 0, %s", axis,
                         shape_text(graph, node->inputs[1 + k]), shape_text(graph, node->inputs[0]));
  }
  s->axes = axes;
  return true;
}

static void set_body_input(Graph *graph, Value *input, const Value *outer, int64_t axis, const Dim *hypotheses) {
  const Dim **shape = ARENA_ARRAY(graph->arena, const Dim *, outer->rank);
  for (int i = 0; i < outer->rank; i++) shape[i] = i == axis ? hypotheses : outer->shape[i];
  input->dtype = outer->dtype;
  input->rank = outer->rank;
  input->shape = shape;
}

static bool check_probabilities(Graph *graph, const Node *node, BeamSearch *s) {
  const Value *scores = s->body->outputs[0];
  if (scores->dtype != RNNCC_F32 || scores->rank != 2 || !same_dim(scores->shape[0], s->hypotheses) ||
      !dim_is_const(scores->shape[1]))
    return shape_error(node, "the body's first output must be log probabilities, f32[%s, tokens], found %s",
                       dim_text(graph, s->hypotheses), shape_text(graph, scores));
  s->vocabulary = dim_value(scores->shape[1]);
  if (s->vocabulary < 2) return shape_error(node, "expected 2 tokens or more, found %s", shape_text(graph, scores));
  return is_in(node, ATTR_end_token, 0, s->vocabulary - 1);
}

static bool check_states(Graph *graph, const Node *node, const BeamSearch *s) {
  for (int k = 0; k < s->n_states; k++) {
    const Value *in = s->body->inputs[1 + k], *out = s->body->outputs[1 + k];
    if (in->dtype != out->dtype || !shapes_agree(in, out))
      return shape_error(node, "a state goes in as %s and comes out as %s; they must be the same",
                         shape_text(graph, in), shape_text(graph, out));
  }
  return true;
}

static bool read_body(Graph *graph, Node *node, BeamSearch *s) {
  Graph *body = body_instantiate(graph, node, ATTR_body);
  int formal = body->n_inputs - node->n_captures, wanted = 1 + s->n_states;
  if (formal != wanted || body->n_outputs != wanted)
    return shape_error(node,
                       "the body has %d inputs and %d outputs; expected %d of each: tokens or log probabilities, "
                       "then the states",
                       formal, body->n_outputs, wanted);
  if (graph_draws(body)) return shape_unsupported(node, "its body draws random numbers");
  s->body = body;
  s->hypotheses = dim_mul(graph->dims, s->sentences, dim_const(graph->dims, s->beam));
  for (int i = 0; i < wanted; i++)
    set_body_input(graph, body->inputs[i], node->inputs[i], i ? s->axes[i - 1] : 0, s->hypotheses);
  return body_infer(body) && check_probabilities(graph, node, s) && check_states(graph, node, s);
}

/* What a run leaves to the next is a state of the context, whose extents do not change. */
static bool check_resumed(Graph *graph, const Node *node, int n_states) {
  if (graph->outer)
    return shape_unsupported(node, "`steps` in a body: only a search outside of all goes on in later runs");
  for (int i = 0; i <= n_states; i++)
    if (!value_static(node->inputs[i]))
      return shape_unsupported(node, "`steps` needs constant extents, found %s", shape_text(graph, node->inputs[i]));
  return true;
}

bool read_beam_search(Graph *graph, Node *node, BeamSearch *search) {
  *search = (BeamSearch){.n_states = node->n_inputs - node->n_captures - 1};
  if (!read_numbers(node, search) || !check_rank(graph, node, 0, 1, 1)) return false;
  search->sentences = node->inputs[0]->shape[0];
  if (search->run_steps && !check_resumed(graph, node, search->n_states)) return false;
  for (int k = 0; k < search->n_states; k++)
    if (!check_rank(graph, node, 1 + k, 1, MAX_RANK)) return false;
  return read_axes(graph, node, search) && read_body(graph, node, search);
}

bool shape_beam_search(Graph *graph, Node *node) {
  BeamSearch s;
  if (!read_beam_search(graph, node, &s)) return false;
  const Dim *shape[] = {s.sentences, dim_const(graph->dims, s.best), dim_const(graph->dims, s.steps)};
  set_shape(graph, node, 0, 3, shape);
  set_shape(graph, node, 1, 2, shape);
  set_shape(graph, node, 2, 2, shape);
  set_shape(graph, node, 3, 1, shape);
  return set_shape(graph, node, 4, 1, shape);
}
