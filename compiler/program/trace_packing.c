/* SPDX-License-Identifier: MIT */
/*
 * A family's `pack` is the one place that knows the layout which its kernels read. Here it is called with numbers for
 * which it was not made: each element of the weights has the number of its place, and what comes out says where each
 * element of the packed constant comes from. Numbers are written in digits from 1 to 128, one call for each digit,
 * since f32, bf16 and f16 have these exactly, and 0 is no element. A last call, with fractions, proves it: the copies
 * must give every bit of what `pack` makes of them. So a family whose packing computes is found out, and named.
 *
 * One sum is understood: that of a recurrent layer's two biases. The second ones have calls of their own.
 */
#include "program/trace_packing.h"

#include <string.h>

#include "ir/cell.h"
#include "ir/family.h"
#include "ir/mutable.h"
#include "ir/op.h"
#include "ir/tensor.h"
#include "program/weight_copies.h"
#include "support/list.h"

enum { BASE = 128, PARTS = 2, BIAS_INPUT = 3, NOT_A_COPY = -2, NO_ELEMENT = -1 };

/* A packed constant. */
typedef struct Packed {
  DType dtype;
  int64_t count;
  bool depends;
  const void *without;  /* its bytes where all weights are 0 */
  int64_t *from[PARTS]; /* by element: the number of the element of that part; NO_ELEMENT, NOT_A_COPY */
} Packed;

typedef struct Trace {
  Graph *graph;
  Node *node;
  Arena *scratch;
  int n_sources;
  Value **sources;
  int64_t *first;      /* [n_sources + 1]: the number of a source's first element */
  const Value *biases; /* whose second halves are part 1; NULL: there is no such part */
  int n_packed;
  Packed *packed;
} Trace;

/* ---- what the node reads ---- */

/* Has the derivation made it as the kernel reads it? */
static bool is_packed_already(const Node *node, const Value *value) {
  for (int i = 0; i < node->n_packed; i++)
    if (node->packed[i] == value) return true;
  return false;
}

static void visit_inputs(const Node *node, void (*visit)(Value *value, void *context), void *context) {
  for (int i = 0; i < node->n_inputs; i++)
    if (node->inputs[i] && node->inputs[i]->block && !is_packed_already(node, node->inputs[i]))
      visit(node->inputs[i], context);
  for (int p = 0; p < node->n_prologue; p++) visit_inputs(node->prologue[p], visit, context);
}

static void note_any(Value *value, void *context) {
  (void)value;
  *(bool *)context = true;
}

bool reads_mutable(const Node *node) {
  bool any = false;
  visit_inputs(node, note_any, &any);
  return any;
}

static void add_source(Value *value, void *context) {
  Trace *trace = context;
  for (int i = 0; i < trace->n_sources; i++)
    if (trace->sources[i] == value) return;
  *LIST_APPEND(trace->scratch, trace->sources, trace->n_sources) = value;
}

/* The biases come first: their numbers have few digits. */
static void find_sources(Trace *trace) {
  Value *biases = cell_kind(trace->node->op->kind) ? node_input(trace->node, BIAS_INPUT) : NULL;
  if (biases && biases->block) {
    trace->biases = biases;
    add_source(biases, trace);
  }
  visit_inputs(trace->node, add_source, trace);
  trace->first = ARENA_ARRAY(trace->scratch, int64_t, trace->n_sources + 1);
  for (int i = 0; i < trace->n_sources; i++) trace->first[i + 1] = trace->first[i] + value_count(trace->sources[i]);
}

static int part_of(const Trace *trace, const Value *source, int64_t i) {
  if (source != trace->biases) return 0;
  int64_t both = dim_value(source->shape[1]);
  return i % both >= both / 2;
}

static int source_of(const Trace *trace, int64_t number) {
  int source = 0;
  while (number >= trace->first[source + 1]) source++;
  return source;
}

/* ---- numbers ---- */

typedef double NumberOf(int64_t number, int64_t place);

static double nothing(int64_t number, int64_t place) {
  (void)number, (void)place;
  return 0;
}

static double digit(int64_t number, int64_t place) { return (double)(number / place % BASE + 1); }

/* Fractions, of which neighbours are far apart. */
static double fraction(int64_t number, int64_t place) {
  (void)place;
  uint32_t bits = (uint32_t)number * 0x9E3779B1u >> 9; /* 2^32 by the golden ratio */
  return (double)(float)(0.5 + (double)(bits | 1) / (1 << 24));
}

/* Only elements of the part have numbers; PARTS: all have. */
static void number_sources(const Trace *trace, Arena *arena, NumberOf *number_of, int64_t place, int part) {
  for (int s = 0; s < trace->n_sources; s++) {
    Value *source = trace->sources[s];
    int64_t count = value_count(source);
    Tensor *tensor = tensor_new(arena, source->dtype, 1, &count);
    for (int64_t i = 0; i < count; i++)
      if (part == PARTS || part_of(trace, source, i) == part)
        tensor_set(tensor, i, number_of(trace->first[s] + i, place));
    source->data = tensor->data;
  }
}

/* ---- calls of `pack` ---- */

static void pack_anew(Trace *trace) {
  Node *node = trace->node;
  node->packed = NULL;
  node->n_packed = 0;
  node->op->family->pack(trace->graph, node);
}

/* A call that leaves nothing behind but what `read` takes of it. */
static void try_packing(Trace *trace, NumberOf *number_of, int64_t place, int part,
                        void (*read)(Trace *trace, int64_t place, int part)) {
  Graph *graph = trace->graph, before = *graph;
  Arena *arena = arena_new();
  graph->arena = arena;
  graph->values = arena_copy(arena, graph->values, (size_t)graph->n_values * sizeof(Value *));
  graph->value_capacity = graph->n_values;
  number_sources(trace, arena, number_of, place, part);
  pack_anew(trace);
  read(trace, place, part);
  graph->arena = before.arena;
  graph->values = before.values;
  graph->n_values = before.n_values;
  graph->value_capacity = before.value_capacity;
  arena_free(arena);
}

/* Of what the family packed; one that it takes as it is, or leaves out, has none. */
static const Value *packed_value(const Trace *trace, int i) {
  const Value *value = trace->node->packed[i];
  return value && value->data && !value->block ? value : NULL;
}

static void read_without(Trace *trace, int64_t place, int part) {
  (void)place, (void)part;
  trace->n_packed = trace->node->n_packed;
  trace->packed = ARENA_ARRAY(trace->scratch, Packed, trace->n_packed);
  for (int i = 0; i < trace->n_packed; i++) {
    const Value *value = packed_value(trace, i);
    if (!value) continue;
    Packed *packed = &trace->packed[i];
    packed->dtype = value->dtype;
    packed->count = value_count(value);
    packed->without = arena_copy(trace->scratch, value->data, (size_t)value_max_bytes(value));
    for (int p = 0; p < (trace->biases ? PARTS : 1); p++)
      packed->from[p] = ARENA_ARRAY(trace->scratch, int64_t, packed->count);
  }
}

static double element_without(const Packed *packed, int64_t i) {
  const Tensor elements = {.dtype = packed->dtype, .data = (void *)packed->without};
  return tensor_get(&elements, i);
}

/* Where there is no element, there is none in any digit. */
static void read_element(Packed *packed, int part, int64_t i, double now, double without, int64_t place) {
  int64_t *from = &packed->from[part][i];
  bool none = now == without, is_digit = now >= 1 && now <= BASE && now == (double)(int)now;
  packed->depends |= !none;
  if (*from == NOT_A_COPY || (none && *from == NO_ELEMENT)) return;
  if (none)
    *from = place == 1 ? NO_ELEMENT : NOT_A_COPY;
  else if (*from == NO_ELEMENT || without != 0 || !is_digit)
    *from = NOT_A_COPY;
  else
    *from += ((int64_t)now - 1) * place;
}

static bool same_form(const Trace *trace) {
  if (trace->node->n_packed != trace->n_packed) return false;
  for (int i = 0; i < trace->n_packed; i++) {
    const Value *value = packed_value(trace, i);
    const Packed *packed = &trace->packed[i];
    if (value ? value->dtype != packed->dtype || value_count(value) != packed->count : packed->count != 0) return false;
  }
  return true;
}

static void refuse(const Trace *trace) {
  const Node *node = trace->node;
  error_at(
      node->where, EXIT_UNSUPPORTED,
      "--weights=mutable: the kernel of %s%s%s computes with the weights when it packs them, which the module does "
      "not do again",
      node->op->name, node->schedule && node->schedule->text ? ", " : "",
      node->schedule && node->schedule->text ? node->schedule->text : "");
  stop_on_errors();
}

static void read_digit(Trace *trace, int64_t place, int part) {
  if (!same_form(trace)) refuse(trace);
  for (int i = 0; i < trace->n_packed; i++) {
    const Value *value = packed_value(trace, i);
    for (int64_t e = 0; value && e < trace->packed[i].count; e++)
      read_element(&trace->packed[i], part, e, value_element(value, e), element_without(&trace->packed[i], e), place);
  }
}

static void try_digits(Trace *trace, int part) {
  int64_t numbers = part ? value_count(trace->biases) : trace->first[trace->n_sources];
  for (int64_t place = 1; place == 1 || place < numbers; place *= BASE)
    try_packing(trace, digit, place, part, read_digit);
}

/* ---- the proof ---- */

static int64_t from_of(const Packed *packed, int part, int64_t i) {
  return packed->from[part] ? packed->from[part][i] : NO_ELEMENT;
}

/* Of the last call: what the copies make of it. */
static double expected(const Trace *trace, const Packed *packed, int64_t i, Tensor *one) {
  (void)trace;
  int64_t a = from_of(packed, 0, i), b = from_of(packed, 1, i);
  if (a == NO_ELEMENT && b == NO_ELEMENT) return element_without(packed, i);
  float first = a >= 0 ? (float)fraction(a, 0) : 0, second = b >= 0 ? (float)fraction(b, 0) : 0;
  tensor_set(one, 0, (double)(first + second));
  return tensor_get(one, 0);
}

/* What the copies can make: bytes that none writes are 0, and sums are of f32. */
static bool is_understood(const Packed *packed, int64_t i) {
  int64_t a = from_of(packed, 0, i), b = from_of(packed, 1, i);
  if (a == NOT_A_COPY || b == NOT_A_COPY) return false;
  if (a >= 0 && b >= 0) return packed->dtype == RNNCC_F32;
  double without = a >= 0 || b >= 0 || !packed->depends ? 0 : element_without(packed, i);
  return !(without < 0) && !(without > 0);
}

static bool is_proved(const Trace *trace, const Packed *packed, const Value *value) {
  int64_t single = 1;
  Tensor *one = tensor_new(trace->scratch, value->dtype, 1, &single);
  bool widths = value->dtype == RNNCC_F32 || value->dtype == RNNCC_BF16 || value->dtype == RNNCC_F16;
  if (packed->depends && !widths) return false;
  for (int64_t i = 0; i < packed->count; i++) {
    if (!is_understood(packed, i)) return false;
    double now = value_element(value, i), wanted = expected(trace, packed, i, one);
    if (now < wanted || now > wanted) return false;
  }
  return true;
}

/* ---- blocks and copies ---- */

static void find_copies(const Trace *trace, const Packed *packed, Value *value) {
  MutableWeights *m = trace->graph->mutables;
  *LIST_ADD(trace->graph->arena, m->packed, m->n_packed, m->packed_capacity) = value;
  value->block = mutable_blocks(m);
  CopyFinder *finder = copies_begin(trace->scratch, value->block - 1, value->dtype);
  for (int part = 0; part < PARTS; part++)
    for (int64_t i = 0; packed->from[part] && i < packed->count; i++) {
      int64_t from = packed->from[part][i];
      if (from < 0) continue;
      int source = source_of(trace, from);
      Origin origin = {.source = trace->sources[source]->block - 1,
                       .adds = part && packed->from[0][i] >= 0,
                       .from = from - trace->first[source]};
      copies_element(finder, i, origin);
    }
  copies_end(finder, trace->graph->arena, m);
}

static void check_sources(const Trace *trace, const Packed *packed) {
  for (int s = 0; packed->depends && s < trace->n_sources; s++)
    if (trace->sources[s]->dtype != RNNCC_F32) refuse(trace);
}

static void settle(Trace *trace) {
  if (!same_form(trace)) refuse(trace);
  for (int i = 0; i < trace->n_packed; i++) {
    const Packed *packed = &trace->packed[i];
    Value *value = trace->node->packed[i];
    if (!packed_value(trace, i)) continue;
    if (!is_proved(trace, packed, value)) refuse(trace);
    check_sources(trace, packed);
    if (packed->depends) find_copies(trace, packed, value);
  }
}

void trace_packing(Graph *graph, Node *node) {
  Trace trace = {.graph = graph, .node = node, .scratch = arena_new()};
  find_sources(&trace);
  try_packing(&trace, nothing, 0, PARTS, read_without);
  try_digits(&trace, 0);
  if (trace.biases) try_digits(&trace, 1);
  number_sources(&trace, graph->arena, fraction, 0, PARTS);
  pack_anew(&trace);
  settle(&trace);
  arena_free(trace.scratch);
}
