/* SPDX-License-Identifier: MIT */
#include "program/emitter.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "ir/family.h"
#include "program/calls.h"
#include "support/diagnostics.h"

Arena *emitter_arena(Emitter *emitter) { return emitter->arena; }
Graph *emitter_graph(Emitter *emitter) { return emitter->graph; }

/* Room for one more in a list of `count` elements of `size` bytes. */
static void *grown(Arena *arena, void *list, int count, int *capacity, size_t size) {
  if (count < *capacity) return list;
  *capacity = *capacity ? 2 * *capacity : 16;
  void *bigger = arena_array(arena, (size_t)*capacity, size);
  if (count) memcpy(bigger, list, (size_t)count * size);
  return bigger;
}

/* ---- kernels ---- */

KernelSpec *kernel_spec(Emitter *emitter, const char *template_name) {
  return kernel_spec_new(emitter->arena, template_name);
}

void kernel_knob(KernelSpec *spec, const char *name, int64_t value) {
  if (spec->n_knobs == MAX_KNOBS) bug("%s: more than %d knobs", spec->template_name, MAX_KNOBS);
  spec->knobs[spec->n_knobs++] = (Knob){name, value};
}

void kernel_type(KernelSpec *spec, const char *name, DType dtype) {
  if (spec->n_types == MAX_TYPE_KNOBS) bug("%s: more than %d types", spec->template_name, MAX_TYPE_KNOBS);
  spec->types[spec->n_types++] = (TypeKnob){name, dtype_c(dtype)};
}

void kernel_bits(KernelSpec *spec, const char *name, DType dtype) {
  static const char *const BITS[] = {[1] = "bits8", [2] = "bits16", [4] = "bits32", [8] = "bits64"};
  if (spec->n_types == MAX_TYPE_KNOBS) bug("%s: more than %d types", spec->template_name, MAX_TYPE_KNOBS);
  spec->types[spec->n_types++] = (TypeKnob){name, BITS[dtype_size(dtype)]};
}

void kernel_hook(KernelSpec *spec, const char *function, const char *body) {
  if (spec->n_hooks == MAX_HOOKS) bug("%s: more than %d hooks", spec->template_name, MAX_HOOKS);
  spec->hooks[spec->n_hooks++] = (Hook){function, arena_string(spec->arena, body)};
}

static const SpecialisedKernel *find_or_make_kernel(Emitter *emitter, const Node *node, const KernelSpec *spec) {
  const char *key = kernel_key(emitter->arena, spec);
  int n = emitter->n_kernels;
  for (int i = 0; i < n; i++)
    if (!strcmp(emitter->kernels[i].key, key)) return emitter->kernels[i].kernel;
  const SpecialisedKernel *kernel = specialise(emitter->graph, spec, arena_format(emitter->arena, "k%d", n));
  emitter->kernels = grown(emitter->arena, emitter->kernels, n, &emitter->kernel_capacity, sizeof *emitter->kernels);
  emitter->kernels[emitter->n_kernels++] = (EmittedKernel){key, node, kernel};
  return kernel;
}

/* ---- calls ---- */

static int parameter_index(const SpecialisedKernel *kernel, const char *name) {
  for (int i = 0; i < kernel->n_parameters; i++)
    if (!strcmp(kernel->parameters[i].name, name)) return i;
  return -1;
}

static KernelCall *add_call(Emitter *emitter, const Node *node) {
  KernelCall *call = ARENA_NEW(emitter->arena, KernelCall);
  call->emitter = emitter;
  call->node = node;
  call->region = emitter->region;
  emitter->calls =
      grown(emitter->arena, emitter->calls, emitter->n_calls, &emitter->call_capacity, sizeof *emitter->calls);
  emitter->calls[emitter->n_calls++] = call;
  return call;
}

KernelCall *kernel_call(Emitter *emitter, const Node *node, KernelSpec *spec) {
  KernelCall *call = add_call(emitter, node);
  call->wavefront = emitter->wavefront;
  call->layer = emitter->layer;
  call->step = emitter->n_steps++;
  call->kernel = find_or_make_kernel(emitter, node, spec);
  call->n_arguments = call->kernel->n_parameters;
  call->arguments = ARENA_ARRAY(emitter->arena, Argument, call->n_arguments);
  return call;
}

static void add_access(KernelCall *call, Value *value, bool writes) {
  Access *bigger = ARENA_ARRAY(call->emitter->arena, Access, call->n_accesses + 1);
  if (call->n_accesses) memcpy(bigger, call->accesses, (size_t)call->n_accesses * sizeof *bigger);
  bigger[call->n_accesses++] = (Access){value, writes};
  call->accesses = bigger;
}

bool identifier_char(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* Every `t<id>` of the expression is a value that the call touches. */
static void find_accesses(KernelCall *call, const char *expression, bool writes) {
  const Emitter *emitter = call->emitter;
  for (const char *at = expression; *at; at++) {
    bool starts = *at == 't' && (at == expression || !identifier_char(at[-1]));
    if (!starts || !isdigit((unsigned char)at[1])) continue;
    char *end;
    long id = strtol(at + 1, &end, 10);
    if (!identifier_char(*end) && id < emitter->n_values) add_access(call, emitter->values[id], writes);
  }
}

static void set_argument(KernelCall *call, const char *parameter, const char *expression) {
  const SpecialisedKernel *kernel = call->kernel;
  int index = parameter_index(kernel, parameter);
  if (index < 0) bug("%s has no parameter `%s`", kernel->function, parameter);
  if (call->arguments[index].expression) bug("%s: parameter `%s` is given twice", kernel->function, parameter);
  call->arguments[index] = (Argument){parameter, expression};
  const char *type = kernel->parameters[index].type;
  find_accesses(call, expression, strncmp(type, "const ", 6) != 0);
}

void call_argument(KernelCall *call, const char *parameter, const char *format, ...) {
  Text text = text_new(call->emitter->arena);
  va_list arguments;
  va_start(arguments, format);
  text_add_va(&text, format, arguments);
  va_end(arguments);
  set_argument(call, parameter, text.data);
}

void call_value(KernelCall *call, const char *parameter, const Value *value) {
  if (value)
    call_argument(call, parameter, "t%d", value->id);
  else
    call_argument(call, parameter, "NULL");
}

void call_bits(KernelCall *call, const char *parameter, const Value *value, const Dim *offset) {
  Text text = text_new(call->emitter->arena);
  text_add(&text, "(void *)(t%d", value->id);
  if (!dim_is_const(offset) || dim_value(offset) != 0) {
    text_add(&text, " + ");
    dim_print_c(&text, offset);
  }
  text_add(&text, ")");
  set_argument(call, parameter, text.data);
}

void call_dim(KernelCall *call, const char *parameter, const Dim *dim) {
  Text text = text_new(call->emitter->arena);
  dim_print_c(&text, dim);
  set_argument(call, parameter, text.data);
}

void call_integer(KernelCall *call, const char *parameter, int64_t value) {
  call_argument(call, parameter, "%lld", (long long)value);
}

void call_float(KernelCall *call, const char *parameter, double value) {
  Text text = text_new(call->emitter->arena);
  text_float(&text, (float)value);
  set_argument(call, parameter, text.data);
}

void call_dims(KernelCall *call, const char *parameter, int n, const Dim *const *dims) {
  Text text = text_new(call->emitter->arena);
  text_add(&text, "(const int64_t[]){");
  for (int i = 0; i < n; i++) {
    if (i) text_add(&text, ", ");
    dim_print_c(&text, dims[i]);
  }
  text_add(&text, n ? "}" : "0}");
  set_argument(call, parameter, text.data);
}

void call_ints(KernelCall *call, const char *parameter, int n, const int64_t *values) {
  Text text = text_new(call->emitter->arena);
  text_add(&text, "(const int64_t[]){");
  for (int i = 0; i < n; i++) text_add(&text, "%s%lld", i ? ", " : "", (long long)values[i]);
  text_add(&text, n ? "}" : "0}");
  set_argument(call, parameter, text.data);
}

void call_measured(KernelCall *call, const char *parameter, const Dim *dim) {
  if (dim_is_const(dim)) {
    call_argument(call, parameter, "&(int64_t){0}");
    return;
  }
  const DimSymbol *symbol = dim_as_symbol(dim);
  Emitter *emitter = call->emitter;
  call_argument(call, parameter, "&run->measured[%d]", symbol->index - dim_given_count(emitter->graph->dims));
  const DimSymbol **more = ARENA_ARRAY(emitter->arena, const DimSymbol *, call->n_measured + 1);
  for (int i = 0; i < call->n_measured; i++) more[i] = call->measured[i];
  more[call->n_measured++] = symbol;
  call->measured = more;
}

void call_cost(KernelCall *call, double flops, double bytes) {
  call->flops = flops;
  call->bytes = bytes;
}

void call_no_barrier(KernelCall *call) { call->no_barrier_after = true; }

void emitter_in_wavefront(Emitter *emitter, const Wavefront *wavefront, int layer) {
  emitter->wavefront = wavefront;
  emitter->layer = layer;
}

void calls_beside(const Emitter *emitter, int call, int *first, int *last) {
  const Wavefront *wavefront = emitter->calls[call]->wavefront;
  *first = *last = call;
  while (wavefront && *first > 0 && emitter->calls[*first - 1]->wavefront == wavefront) --*first;
  while (wavefront && *last + 1 < emitter->n_calls && emitter->calls[*last + 1]->wavefront == wavefront) ++*last;
}

/* ---- range checks ---- */

bool emitter_check_range(Emitter *emitter, const Value *value, int64_t lo, int64_t hi, const Dim *hi_dim,
                         const char *what) {
  const Value *root = value_root((Value *)value);
  if (!root->is_input || root->data || emitter->region) return false;
  for (int i = 0; i < emitter->graph->n_states; i++)
    if (emitter->graph->states[i].input == root) return false;
  if (hi_dim && (!dim_is_given(hi_dim) || (!dim_is_const(hi_dim) && !dim_as_symbol(hi_dim)))) return false;
  if (hi_dim && dim_is_const(hi_dim)) {
    hi += dim_value(hi_dim);
    hi_dim = NULL;
  }
  emitter->checks =
      grown(emitter->arena, emitter->checks, emitter->n_checks, &emitter->check_capacity, sizeof *emitter->checks);
  emitter->checks[emitter->n_checks++] = (RangeCheck){root, lo, hi, hi_dim, what};
  return true;
}

/* ---- the pass ---- */

/* What every template may ask for without the family giving it. */
static const Argument supplied[] = {{"team", "team"}, {"run", "run"}, {"fault", "run->fault"}, {"turn", "run->turn"}};
static const Argument team_of_one = {"team", "&alone"}; /* a local of the wavefront's loop */

static void supply(KernelCall *call, const Argument *argument) {
  int index = parameter_index(call->kernel, argument->parameter);
  if (index < 0 || call->arguments[index].expression) return;
  call->arguments[index] = *argument;
  if (!strcmp(argument->parameter, "fault")) call->emitter->may_fault = true;
}

static void complete_arguments(KernelCall *call) {
  if (call->line) return;
  if (call->wavefront && call->wavefront->layers > 1) supply(call, &team_of_one);
  for (size_t i = 0; i < sizeof supplied / sizeof *supplied; i++) supply(call, &supplied[i]);
  for (int i = 0; i < call->n_arguments; i++)
    if (!call->arguments[i].expression)
      bug("%s: parameter `%s` is not given", call->kernel->function, call->kernel->parameters[i].name);
}

/* ---- nothing to do ---- */

static bool measures(const KernelCall *call, const Dim *extent) {
  for (int i = 0; i < call->n_measured; i++)
    if (dim_mentions(extent, call->measured[i])) return true;
  return false;
}

/* Does the node's own kernel find it out? */
static bool node_measures(const KernelCall *of, const Dim *extent) {
  const Emitter *emitter = of->emitter;
  for (int i = 0; i < emitter->n_calls && !dim_is_given(extent); i++)
    if (emitter->calls[i]->node == of->node && measures(emitter->calls[i], extent)) return true;
  return false;
}

/* `d5 > 0 && d6 > 0` of the axes that may be 0 long; false if the value is never empty, or the call itself finds out.
 */
static bool add_condition(Text *text, const KernelCall *call, const Value *value) {
  bool any = false;
  for (int axis = 0; axis < value->rank; axis++) {
    if (dim_lower(value->shape[axis]) > 0 || node_measures(call, value->shape[axis])) continue;
    text_add(text, any ? " && " : "");
    dim_print_c(text, value->shape[axis]);
    text_add(text, " > 0");
    any = true;
  }
  return any;
}

/* A kernel need not run where all that its node writes is empty. */
static void set_guard(KernelCall *call) {
  if (call->node->control) return;
  Text text = text_new(call->emitter->arena);
  for (int i = 0; i < call->node->n_outputs; i++) {
    if (!call->node->outputs[i]) continue;
    text_add(&text, text.length ? " || (" : "(");
    if (!add_condition(&text, call, call->node->outputs[i])) return;
    text_add(&text, ")");
  }
  call->guard = text.data;
}

static bool always_empty(const Node *node) {
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i] && (!value_static(node->outputs[i]) || value_count(node->outputs[i]) > 0)) return false;
  return true;
}

/* ---- control flow ---- */

static KernelCall *add_line(Emitter *emitter, const Node *node, LineKind kind, const char *text) {
  KernelCall *line = add_call(emitter, node);
  line->line = kind;
  line->text = text;
  find_accesses(line, text, false);
  return line;
}

static const char *format_line(Emitter *emitter, const char *format, va_list arguments) {
  Text text = text_new(emitter->arena);
  text_add_va(&text, format, arguments);
  return text.data;
}

void emitter_line(Emitter *emitter, const Node *node, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  add_line(emitter, node, LINE_PLAIN, format_line(emitter, format, arguments));
  va_end(arguments);
}

static void open_region(Emitter *emitter, KernelCall *line) {
  Region *region = ARENA_NEW(emitter->arena, Region);
  *region = (Region){.outer = emitter->region, .first = emitter->n_calls - 1};
  emitter->region = line->opens = region;
}

static void close_region(Emitter *emitter) {
  Region *region = (Region *)emitter->region;
  region->last = emitter->n_calls;
  emitter->region = region->outer;
}

void emitter_open(Emitter *emitter, const Node *node, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  KernelCall *line = add_line(emitter, node, LINE_OPENS, format_line(emitter, format, arguments));
  va_end(arguments);
  open_region(emitter, line);
}

void emitter_turn(Emitter *emitter, const Node *node) {
  close_region(emitter);
  open_region(emitter, add_line(emitter, node, LINE_TURNS, "} else {"));
}

void emitter_close(Emitter *emitter, const Node *node) {
  close_region(emitter);
  add_line(emitter, node, LINE_CLOSES, "}");
}

static void add_value(Emitter *emitter, Value *value) {
  Arena *arena = emitter->arena;
  int n = emitter->n_values++;
  emitter->values = grown(arena, emitter->values, n, &emitter->value_capacity, sizeof *emitter->values);
  emitter->homes = grown(arena, emitter->homes, n, &emitter->home_capacity, sizeof *emitter->homes);
  emitter->values[n] = value;
  emitter->homes[n] = emitter->region;
  value->id = n;
}

Value *emitter_view(Emitter *emitter, const Value *like, Value *of, const Dim *at) {
  Value *view = ARENA_NEW(emitter->arena, Value);
  *view = (Value){.name = like->name, .dtype = like->dtype, .rank = like->rank, .shape = like->shape};
  view->view_of = of;
  view->at = at;
  add_value(emitter, view);
  return view;
}

Value *emitter_constant(Emitter *emitter, DType dtype, const void *data) {
  Value *value = ARENA_NEW(emitter->arena, Value);
  *value = (Value){.name = "constant", .dtype = dtype, .data = data};
  add_value(emitter, value);
  return value;
}

const Region *home_of(const Emitter *emitter, const Value *root) { return emitter->homes[root->id]; }

/* Ids are the body's own up to here; from now on all values and nodes of the module are told apart. */
void emitter_take(Emitter *emitter, Graph *graph) {
  for (int i = 0; i < graph->n_values; i++) add_value(emitter, graph->values[i]);
  for (int i = 0; i < graph->n_nodes; i++) graph->nodes[i]->id = emitter->n_nodes++;
}

static void lower_nodes(Emitter *emitter, const Graph *graph) {
  for (int i = 0; i < graph->n_nodes; i++) {
    Node *node = graph->nodes[i];
    if (always_empty(node)) continue;
    if (node->op->family)
      node->op->family->emit(emitter, node);
    else if (!op_is_view(node->op))
      bug("n%d: nothing runs a %s", node->id, node->op->name);
  }
}

void emitter_body(Emitter *emitter, Graph *body) {
  Graph *outer = emitter->graph;
  emitter->graph = body;
  lower_nodes(emitter, body);
  emitter->graph = outer;
}

/* needs: choose_schedules, pack_weights, dense ids. keeps: the graph as it is, but for ids in bodies. */
Emitter *lower(Graph *graph) {
  Emitter *emitter = ARENA_NEW(graph->arena, Emitter);
  emitter->arena = graph->arena;
  emitter->graph = graph;
  emitter_take(emitter, graph);
  lower_nodes(emitter, graph);
  for (int i = 0; i < emitter->n_calls; i++) {
    complete_arguments(emitter->calls[i]);
    set_guard(emitter->calls[i]);
  }
  return emitter;
}
