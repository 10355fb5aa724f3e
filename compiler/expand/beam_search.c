/* SPDX-License-Identifier: MIT */
/*
 * Beam search: a Loop whose iterations run one step of the network for all hypotheses, then choose the next ones.
 *
 * Of a sentence's K open hypotheses, each followed by each token, the 2K of the highest sums of log probabilities are
 * looked at. Those among the first K that end are kept apart, if they are among the best that have ended; the first K
 * that do not end stay open. At most one of the V continuations of a hypothesis ends, so that there are K of them.
 *
 * Sums only fall. So a search is over once no open hypothesis can get a better score than the worst of those that are
 * returned: the result is that of all steps.
 *
 * With `steps`, a run makes so many of them, and what an iteration leaves to the next is a state of the context.
 */
#include <math.h>

#include "expand/expansion.h"
#include "ir/bodies.h"
#include "shapes/search.h"
#include "shapes/shape.h"
#include "support/diagnostics.h"
#include "support/list.h"

/* What an iteration leaves to the next; the network's states follow. F: how many hypotheses are returned. */
enum {
  TOKEN,        /* i64 [N*K]: the last one of each hypothesis */
  SCORE,        /* f32 [N,K]: sums of log probabilities, the highest first */
  TOKENS,       /* i64 [N,K,L]; after the last one the end token */
  ENDED_SCORE,  /* f32 [N,F], the highest first; -inf: there is none yet */
  ENDED_TOKENS, /* i64 [N,F,L] */
  ENDED_LENGTH, /* i64 [N,F]: tokens before the end */
  POSITION,     /* i64 []: the step */
  N_CARRIED
};

/* ---- small parts ---- */

/* i64 [1]. */
static Value *first_extent(const Formula *f, Value *x) {
  const Attribute first[] = {attribute_int(ATTR_start, 0), attribute_int(ATTR_end, 1)};
  return build_op(f, OP_Shape, 1, &x, 1, 2, first)->outputs[0];
}

/* [N, ...] of what broadcasts to it; N is the first extent of `like`. */
static Value *filled(const Formula *f, Value *like, Value *with, int n, const int64_t *tail) {
  Value *const shape[] = {first_extent(f, like), integers(f, n, tail)};
  return apply2(f, OP_Expand, with, build_concat(f, 2, shape, 0));
}

static Value *nothing(const Formula *f) { return floats(f, 0, NULL, (const float[]){-INFINITY}); }

/* The n largest of each row [N, ...], the highest first; of equal ones the earlier. */
static Value *largest(const Formula *f, Value *x, int64_t n, Value **places) {
  Value *const inputs[] = {x, integers(f, 1, &n)};
  Node *top = build_op(f, OP_TopK, 2, inputs, 2, 0, NULL);
  *places = top->outputs[1];
  return top->outputs[0];
}

static Value *columns(const Formula *f, Value *x, int64_t start, int64_t end) {
  const Range range = {.axis = 1, .start = start, .end = end};
  return build_slice(f, x, 1, &range);
}

/* [N,n] of the elements of [N,m] at these places of their rows. */
static Value *elements_at(const Formula *f, Value *x, Value *places) {
  const Attribute axis = attribute_int(ATTR_axis, 1);
  return build_op(f, OP_GatherElements, 2, (Value *const[]){x, places}, 1, 1, &axis)->outputs[0];
}

/* [N,n,L] of [N,m,L]. */
static Value *hypotheses_at(const Formula *f, Value *x, Value *places) {
  const Attribute batch = attribute_int(ATTR_batch_dims, 1);
  return build_op(f, OP_GatherND, 2, (Value *const[]){x, with_axis(f, places, 2)}, 1, 1, &batch)->outputs[0];
}

static Value *joined(const Formula *f, Value *a, Value *b) { return build_concat(f, 2, (Value *const[]){a, b}, 1); }

static Value *flat(const Formula *f, const BeamSearch *s, Value *x) { return reshaped(f, x, 1, &s->hypotheses); }

/* i64 [N,1]: 0, 1, ...; `like` is [N, ...]. */
static Value *sentences(const Formula *f, Value *like) {
  Value *n = without_axis(f, first_extent(f, like), 0);
  return with_axis(f, apply3(f, OP_Range, number(f, n, 0), n, number(f, n, 1)), 1);
}

/* i64 [N*K]: the sentence of each hypothesis. */
static Value *sentences_of(const Formula *f, const BeamSearch *s, Value *like) {
  return flat(f, s, filled(f, like, sentences(f, like), 1, &s->beam));
}

/* ---- scores ---- */

/* What a sum of log probabilities is multiplied with, of hypotheses of `length` tokens, f32, the end included. */
static Value *weight(const Formula *f, const BeamSearch *s, Value *length) {
  if (s->penalty == 0) return number(f, length, 1);
  return apply2(f, OP_Pow, length, number(f, length, -s->penalty));
}

static Value *weight_of_all(const Formula *f, const BeamSearch *s) {
  return weight(f, s, floats(f, 0, NULL, (const float[]){(float)s->steps}));
}

/* Of the step `t` and `more`. */
static Value *weight_after(const Formula *f, const BeamSearch *s, Value *t, int more) {
  Value *length = plus(f, t, number(f, t, more));
  return weight(f, s, cast(f, length, RNNCC_F32));
}

/* The best hypotheses that have ended, of those that had before and of new ones: scores [N,n], -inf where one has not
 * ended, tokens [N,n,L], all of `length` i64 []. */
static void keep_ended(const Formula *f, const BeamSearch *s, Value *const *before, Value *score, Value *tokens,
                       Value *length, Value **after) {
  const int64_t n = dim_value(score->shape[1]);
  Value *places, *lengths = filled(f, score, length, 1, &n);
  after[ENDED_SCORE] = largest(f, joined(f, before[ENDED_SCORE], score), s->best, &places);
  after[ENDED_TOKENS] = hypotheses_at(f, joined(f, before[ENDED_TOKENS], tokens), places);
  after[ENDED_LENGTH] = elements_at(f, joined(f, before[ENDED_LENGTH], lengths), places);
}

/* ---- a step ---- */

/* The 2K best continuations of each sentence [N,2K]. */
typedef struct Continuations {
  Value *score, *parent, *token; /* the parent of 0..K-1 */
  Value *ends;
} Continuations;

static Continuations continuations(const Formula *f, const BeamSearch *s, Value *score, Value *log_probability) {
  DimTable *dims = f->graph->dims;
  const Dim *K = dim_const(dims, s->beam), *V = dim_const(dims, s->vocabulary);
  const Dim *cube[] = {s->sentences, K, V}, *rows[] = {s->sentences, dim_mul(dims, K, V)};
  Value *sums = plus(f, reshaped(f, log_probability, 3, cube), with_axis(f, score, 2)), *place;
  Continuations c = {.score = largest(f, reshaped(f, sums, 2, rows), 2 * s->beam, &place)};
  Value *vocabulary = number(f, place, (double)s->vocabulary);
  c.parent = over(f, place, vocabulary);
  c.token = minus(f, place, times(f, c.parent, vocabulary));
  c.ends = apply2(f, OP_Equal, c.token, number(f, c.token, (double)s->end));
  return c;
}

static void end_some(const Formula *f, const BeamSearch *s, const Continuations *c, Value *t, Value *const *before,
                     Value **after) {
  Value *parent = columns(f, c->parent, 0, s->beam), *score = columns(f, c->score, 0, s->beam);
  Value *weighted = times(f, score, weight_after(f, s, t, 1));
  Value *ended = apply3(f, OP_Where, columns(f, c->ends, 0, s->beam), weighted, nothing(f));
  keep_ended(f, s, before, ended, hypotheses_at(f, before[TOKENS], parent), t, after);
}

/* Returns the parents of the new hypotheses among all, [N*K]. */
static Value *go_on(const Formula *f, const BeamSearch *s, const Continuations *c, Value *t, Value *const *before,
                    Value **after) {
  int64_t *positions = ARENA_ARRAY(f->graph->arena, int64_t, s->steps);
  for (int64_t i = 0; i < s->steps; i++) positions[i] = i;
  Value *places, *open = apply3(f, OP_Where, c->ends, nothing(f), c->score);
  after[SCORE] = largest(f, open, s->beam, &places);
  Value *parent = elements_at(f, c->parent, places), *token = elements_at(f, c->token, places);
  Value *here = apply2(f, OP_Equal, integers(f, (int)s->steps, positions), t);
  after[TOKENS] = apply3(f, OP_Where, here, with_axis(f, token, 2), hypotheses_at(f, before[TOKENS], parent));
  after[TOKEN] = flat(f, s, token);
  Value *before_it = times(f, sentences(f, parent), number(f, parent, (double)s->beam));
  return flat(f, s, plus(f, parent, before_it));
}

/* [N,K]: the best scores that open hypotheses can get; `length`: tokens they have. With a negative penalty the next
 * token would be their last. */
static Value *attainable(const Formula *f, const BeamSearch *s, Value *length, Value *score) {
  return times(f, score, s->penalty < 0 ? weight_after(f, s, length, 1) : weight_of_all(f, s));
}

/* bool [N,1]: can an open hypothesis still be returned? */
static Value *may_improve(const Formula *f, const BeamSearch *s, Value *const *values) {
  Value *best = attainable(f, s, values[POSITION], columns(f, values[SCORE], 0, 1));
  Value *open = apply2(f, OP_Less, columns(f, values[ENDED_SCORE], s->best - 1, s->best), best);
  Value *steps = number(f, values[POSITION], (double)s->steps);
  return apply2(f, OP_And, open, apply2(f, OP_Less, values[POSITION], steps));
}

static Value *any_may_improve(const Formula *f, const BeamSearch *s, Value *const *values) {
  const int64_t axes[] = {0, 1};
  return reduced(f, OP_ReduceMax, may_improve(f, s, values), 2, axes);
}

/* ---- the loop ---- */

static Value *body_input(Graph *body, const Formula *f, DType dtype, int rank, const Dim **shape) {
  Value *input = graph_value(body, f->name, f->where);
  input->is_input = true;
  input->dtype = dtype;
  input->rank = rank;
  input->shape = shape;
  body->inputs[body->n_inputs++] = input;
  return input;
}

/* The network's step, in the loop's body: its results of these arguments. */
static Value **step_results(const Formula *f, const Graph *step, Value *const *arguments) {
  Node **nodes = ARENA_ARRAY(f->graph->arena, Node *, step->n_nodes);
  Value **results = ARENA_ARRAY(f->graph->arena, Value *, step->n_outputs);
  int n = body_copy_nodes(f->graph, step, arguments, nodes, results);
  for (int i = 0; i < n; i++) graph_append(f->graph, nodes[i]);
  return results;
}

/* The inputs of the loop's body: the iteration, whether to go on, what is carried, the states, the captures. */
static Graph *new_body(const Formula *f, int n, Value *const *outer) {
  Graph *body = body_new(f->graph, f->name);
  body->inputs = ARENA_ARRAY(f->graph->arena, Value *, n + 2);
  body->outputs = ARENA_ARRAY(f->graph->arena, Value *, n + 1);
  body_input(body, f, RNNCC_I64, 0, NULL);
  body_input(body, f, RNNCC_BOOL, 0, NULL);
  for (int i = 0; i < n; i++) body_input(body, f, outer[i]->dtype, outer[i]->rank, outer[i]->shape);
  return body;
}

/* `outer`: what the loop begins with, N_CARRIED values and the states, then the captures. */
static Graph *body_of(const Formula *f, const BeamSearch *s, int n_captures, Value *const *outer) {
  const int n_carried = N_CARRIED + s->n_states;
  Graph *body = new_body(f, n_carried + n_captures, outer);
  const Formula inner = {body, f->name, f->where};
  Value **before = body->inputs + 2, **after = body->outputs + 1, *t = before[POSITION];
  Value **arguments = ARENA_ARRAY(f->graph->arena, Value *, 1 + s->n_states + n_captures);
  arguments[0] = before[TOKEN];
  for (int i = 0; i < s->n_states + n_captures; i++) arguments[1 + i] = before[N_CARRIED + i];
  Value **results = step_results(&inner, s->body, arguments);
  Continuations c = continuations(&inner, s, before[SCORE], results[0]);
  end_some(&inner, s, &c, t, before, after);
  Value *parents = go_on(&inner, s, &c, t, before, after);
  for (int k = 0; k < s->n_states; k++) after[N_CARRIED + k] = gathered(&inner, results[1 + k], parents, s->axes[k]);
  after[POSITION] = plus(&inner, t, number(&inner, t, 1));
  body->outputs[0] = any_may_improve(&inner, s, after);
  body->n_outputs = 1 + n_carried;
  return body;
}

/* One open hypothesis of each sentence, of no token; K - 1 that are never chosen. */
static void begin(const Formula *f, const BeamSearch *s, const Node *node, Value **carried) {
  Value *start = node->inputs[0];
  const int64_t open[] = {s->beam, s->steps}, ended[] = {s->best, s->steps}, shape[] = {1, s->beam};
  float *scores = ARENA_ARRAY(f->graph->arena, float, s->beam);
  for (int64_t k = 1; k < s->beam; k++) scores[k] = -INFINITY;
  Value *end = number(f, start, (double)s->end), *none = number(f, start, 0);
  Value *sentence = sentences_of(f, s, start);
  carried[TOKEN] = gathered(f, start, sentence, 0);
  carried[SCORE] = filled(f, start, floats(f, 2, shape, scores), 1, open);
  carried[TOKENS] = filled(f, start, end, 2, open);
  carried[ENDED_SCORE] = filled(f, start, nothing(f), 1, ended);
  carried[ENDED_TOKENS] = filled(f, start, end, 2, ended);
  carried[ENDED_LENGTH] = filled(f, start, none, 1, ended);
  carried[POSITION] = none;
  for (int k = 0; k < s->n_states; k++) carried[N_CARRIED + k] = gathered(f, node->inputs[1 + k], sentence, s->axes[k]);
}

/* ---- a run of some steps ---- */

/* What an earlier run left, or after none the beginning. */
static void resume(const Formula *f, const BeamSearch *s, Value **carried) {
  Graph *graph = f->graph;
  const int n = N_CARRIED + s->n_states;
  for (int k = 0; k < n; k++) {
    const char *name = graph_new_name(graph, arena_format(graph->arena, "%s.search%d", f->name, k));
    Value *left = graph_value_like(graph, name, f->where, carried[k]);
    left->is_input = true;
    *LIST_APPEND(graph->arena, graph->states, graph->n_states) = (State){.input = left, .batch_axis = -1};
  }
  const State *states = graph->states + graph->n_states - n;
  Value *position = states[POSITION].input, *first = apply2(f, OP_Equal, position, number(f, position, 0));
  for (int k = 0; k < n; k++)
    if (k != POSITION) carried[k] = apply3(f, OP_Where, first, carried[k], states[k].input);
  carried[POSITION] = position;
}

static void leave(Graph *graph, int n, Value *const *after) {
  for (int k = 0; k < n; k++) graph->states[graph->n_states - n + k].output = after[k];
}

/* bool [N,1,L]: where the tokens of hypotheses that may be the best differ from `reference` [N,1,L]. */
static Value *differs(const Formula *f, Value *tokens, Value *may_be, Value *reference) {
  const int64_t hypotheses[] = {1};
  Value *other = apply(f, OP_Not, apply2(f, OP_Equal, tokens, reference));
  return reduced(f, OP_ReduceMax, apply2(f, OP_And, other, with_axis(f, may_be, 2)), 1, hypotheses);
}

/* i64 [N,1]: the tokens that all hypotheses of a sentence which may be the best begin with: the open ones that can get
 * a better score than the best that has ended, and that one. */
static Value *common_tokens(const Formula *f, const BeamSearch *s, Value *const *after) {
  const int64_t positions[] = {2};
  Value *best_ended = columns(f, after[ENDED_SCORE], 0, 1), *tokens = columns(f, after[ENDED_TOKENS], 0, 1);
  Value *open = apply2(f, OP_Less, best_ended, attainable(f, s, after[POSITION], after[SCORE]));
  Value *any = columns(f, open, 0, 1), *has_ended = apply2(f, OP_Less, nothing(f), best_ended);
  Value *reference = apply3(f, OP_Where, with_axis(f, any, 2), columns(f, after[TOKENS], 0, 1), tokens);
  Value *apart = apply2(f, OP_Or, differs(f, after[TOKENS], open, reference), differs(f, tokens, has_ended, reference));
  Value *so_far = apply2(f, OP_CumSum, cast(f, apart, RNNCC_I32), integers(f, 1, positions));
  Value *equal = cast(f, apply2(f, OP_Equal, so_far, number(f, so_far, 0)), RNNCC_I64);
  Value *most = apply3(f, OP_Where, any, after[POSITION], columns(f, after[ENDED_LENGTH], 0, 1));
  return apply2(f, OP_Min, summed_away(f, equal, 1, positions), most);
}

/* bool [N]: can no step change the result? And i64 [N]: the first tokens of the best hypothesis that none can change.
 * lengths: i64 [N,F]. */
static void tell_progress(const Formula *f, const BeamSearch *s, Value *const *after, Value *lengths, Value **results) {
  Value *over = apply(f, OP_Not, may_improve(f, s, after)), *all = columns(f, lengths, 0, 1);
  Value *settled = apply3(f, OP_Where, over, all, common_tokens(f, s, after));
  results[0] = without_axis(f, settled, 1);
  results[1] = without_axis(f, over, 1);
}

void expand_beam_search(const Formula *f, const Node *node, Value **results) {
  BeamSearch s;
  if (!read_beam_search(f->graph, (Node *)node, &s)) bug("BeamSearch was good before");
  const int n_carried = N_CARRIED + s.n_states, n = n_carried + node->n_captures;
  Value *progress[2], **inputs = ARENA_ARRAY(f->graph->arena, Value *, n + 2), **outer = inputs + 2, *ended[N_CARRIED];
  begin(f, &s, node, outer);
  if (s.run_steps) resume(f, &s, outer);
  for (int i = 0; i < node->n_captures; i++) outer[n_carried + i] = node->inputs[1 + s.n_states + i];
  inputs[0] = number(f, node->inputs[0], (double)(s.run_steps ? s.run_steps : s.steps));
  inputs[1] = s.run_steps ? any_may_improve(f, &s, outer) : NULL;
  Graph *body = body_of(f, &s, node->n_captures, outer);
  Value **after = build_loop(f, body, n + 2, inputs, node->n_captures, n_carried)->outputs;
  if (s.run_steps) leave(f->graph, n_carried, after);
  keep_ended(f, &s, after, times(f, after[SCORE], weight_of_all(f, &s)), after[TOKENS], after[POSITION], ended);
  results[0] = ended[ENDED_TOKENS];
  if (node_output(node, 1)) results[1] = ended[ENDED_LENGTH];
  if (node_output(node, 2)) results[2] = ended[ENDED_SCORE];
  if (node_output(node, 3) || node_output(node, 4)) tell_progress(f, &s, after, ended[ENDED_LENGTH], progress);
  if (node_output(node, 3)) results[3] = progress[0];
  if (node_output(node, 4)) results[4] = progress[1];
}
