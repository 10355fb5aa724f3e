/* SPDX-License-Identifier: MIT */
/* The constant tables at the end of the unit. Only they have names of the model, as string literals. */
#include "cpu.h"
#include "emit/unit.h"
#include "ir/family.h"
#include "ir/mutable.h"
#include "machine/targets.h"

static void emit_name(Text *out, const char *name) { text_quoted(out, name ? name : ""); }

/* ---- tensors ---- */

static void emit_tensor(Text *out, const Value *value) {
  text_add(out, "{.name = ");
  emit_name(out, value->name);
  text_add(out, ", .dtype = %s, .rank = %d, .shape = {", dtype_info(value->dtype)->constant, value->rank);
  for (int i = 0; i < value->rank; i++)
    text_add(out, "%s%lld", i ? ", " : "",
             dim_is_const(value->shape[i]) ? (long long)dim_value(value->shape[i]) : -1LL);
  text_add(out, "%s}, .max_shape = {", value->rank ? "" : "0");
  for (int i = 0; i < value->rank; i++) text_add(out, "%s%lld", i ? ", " : "", (long long)dim_upper(value->shape[i]));
  text_add(out, "%s}, .dim = {", value->rank ? "" : "0");
  for (int i = 0; i < MAX_RANK; i++) {
    const DimSymbol *symbol = i < value->rank ? dim_as_symbol(value->shape[i]) : NULL;
    text_add(out, "%s%d", i ? ", " : "", symbol && symbol->kind == DIM_GIVEN ? symbol->index : -1);
  }
  text_add(out, "}}");
}

void emit_tensors(Text *out, const char *table, Value *const *values, int count) {
  if (!count) return;
  text_add(out, "\nstatic const rnncc_tensor_info %s[] = {\n", table);
  for (int i = 0; i < count; i++) {
    text_add(out, "  ");
    emit_tensor(out, values[i]);
    text_add(out, ",\n");
  }
  text_add(out, "};\n");
}

static void emit_dim_table(Text *out, const Graph *graph) {
  int count = dim_given_count(graph->dims);
  if (!count) return;
  text_add(out, "\nstatic const rnncc_dim_info dims[] = {\n");
  for (int i = 0; i < count; i++) {
    const DimSymbol *symbol = dim_symbol_at(graph->dims, i);
    text_add(out, "  {");
    emit_name(out, symbol->name);
    text_add(out, ", %lld, %lld, %lld, %lld},\n", (long long)symbol->min, (long long)symbol->opt,
             (long long)symbol->max, (long long)symbol->multiple);
  }
  text_add(out, "};\n");
}

/* `room`: the upper bounds known before the run. */
static void emit_output_shapes(Text *out, const Graph *graph, const char *name, bool room) {
  text_add(out, "\nstatic void %s(const int64_t *dims_now, int64_t (*shapes)[RNNCC_MAX_RANK]) {\n", name);
  for (int i = 0; i < dim_known_count(graph->dims); i++)
    text_add(out, "  const int64_t d%d = dims_now[%d];\n  (void)d%d;\n", i, i, i);
  text_add(out, "  (void)dims_now, (void)shapes;\n");
  for (int i = 0; i < graph_own_outputs(graph); i++)
    for (int axis = 0; axis < graph->outputs[i]->rank; axis++) {
      const Dim *extent = graph->outputs[i]->shape[axis];
      text_add(out, "  shapes[%d][%d] = ", i, axis);
      dim_print_c(out, room && !dim_is_given(extent) ? dim_const(graph->dims, dim_upper(extent)) : extent);
      text_add(out, ";\n");
    }
  text_add(out, "}\n");
}

/* ---- states ---- */

int64_t state_slots(const State *state) {
  return state->batch_axis < 0 ? 1 : dim_upper(state->input->shape[state->batch_axis]);
}

static void emit_states(Text *out, const Graph *graph) {
  if (!graph->n_states) return;
  Value **tensors = ARENA_ARRAY(graph->arena, Value *, graph->n_states);
  for (int i = 0; i < graph->n_states; i++) tensors[i] = graph->states[i].input;
  emit_tensors(out, "state_tensors", tensors, graph->n_states);
  text_add(out, "\nstatic const rnncc_state_info states[] = {\n");
  for (int i = 0; i < graph->n_states; i++) {
    const State *state = &graph->states[i];
    text_add(out, "  {.tensor = &state_tensors[%d], .batch_axis = %d, .slots = %lld},\n", i, state->batch_axis,
             (long long)state_slots(state));
  }
  text_add(out, "};\n\nstatic const ModuleState state_places[] = {\n");
  for (int i = 0; i < graph->n_states; i++) {
    const State *state = &graph->states[i];
    text_add(out, "  {.arena_in = %lld, .arena_out = %lld, .bytes = %lld},\n",
             (long long)value_root(state->input)->offset, (long long)value_root(state->output)->offset,
             (long long)value_max_bytes(state->input));
  }
  text_add(out, "};\n");
}

/* ---- checks, steps, staged outputs ---- */

static void emit_checks(Text *out, const Program *program) {
  if (!program->n_checks) return;
  text_add(out, "\nstatic const ModuleRangeCheck checks[] = {\n");
  for (int i = 0; i < program->n_checks; i++) {
    const RangeCheck *check = &program->checks[i];
    text_add(out, "  {.input = %d, .lo = %lld, .hi = %lld, .hi_dim = %d, .what = ", check->value->slot,
             (long long)check->lo, (long long)check->hi, check->hi_dim ? dim_as_symbol(check->hi_dim)->index : -1);
    emit_name(out, check->what);
    text_add(out, "},\n");
  }
  text_add(out, "};\n");
}

static void emit_steps(Text *out, const Program *program) {
  if (!program->n_calls) return;
  text_add(out, "\nstatic const ModuleStep steps[] = {\n");
  for (int i = 0; i < program->n_calls; i++) {
    const Call *call = program->calls[i];
    const Node *node = call->item->node;
    const char *schedule = call_schedule(call);
    text_add(out, "  {\"%s%s%s\", ", call->kernel->function, schedule ? " " : "", schedule ? schedule : "");
    emit_name(out, node->name);
    text_add(out, ", %.17g, %.17g, %s},\n", call->flops, call->bytes,
             call->products ? dtype_info(call->products)->constant : "RNNCC_NONE");
  }
  text_add(out, "};\n");
}

static bool any_staged(const Graph *graph) {
  for (int i = 0; i < graph_first_gradient(graph); i++) {
    const Value *root = value_root(graph->outputs[i]);
    if (root->storage != STORAGE_OUTPUT || root->slot != i) return true;
  }
  return false;
}

static void emit_staged(Text *out, const Graph *graph) {
  if (!any_staged(graph)) return;
  text_add(out, "\nstatic const int64_t staged_outputs[] = {");
  for (int i = 0; i < graph_first_gradient(graph); i++) {
    const Value *root = value_root(graph->outputs[i]);
    bool staged = root->storage == STORAGE_ARENA;
    if (!staged && root->slot != i) bug("output %d shares output %d's buffer", i, root->slot);
    text_add(out, "%s%lld", i ? ", " : "", staged ? (long long)root->offset : -1LL);
  }
  text_add(out, "};\n");
}

/* ---- training ---- */

static void emit_places(Text *out, const char *name, const Graph *graph, bool initial) {
  text_add(out, "\nstatic const size_t %s[] = {", name);
  for (int i = 0; i < graph->n_parameters; i++) {
    const Value *value = initial ? graph->initials[i] : graph->inputs[graph_first_parameter(graph) + i];
    text_add(out, "%s%lld,", i % 8 ? " " : "\n  ", (long long)value->offset);
  }
  text_add(out, "\n};\n");
}

static void emit_indices(Text *out, const char *name, const int *list, int count) {
  if (!count) return;
  text_add(out, "\nstatic const int32_t %s[] = {", name);
  for (int i = 0; i < count; i++) text_add(out, "%s%d", i ? ", " : "", list[i]);
  text_add(out, "};\n");
}

static void emit_parameters(Text *out, const Graph *graph) {
  if (!graph->n_parameters) return;
  emit_indices(out, "output_gradients", graph->output_gradients, graph->n_output_gradients);
  emit_indices(out, "input_gradients", graph->input_gradients, graph->n_input_gradients);
  emit_tensors(out, "parameters", graph->inputs + graph_first_parameter(graph), graph->n_parameters);
  emit_places(out, "parameter_places", graph, false);
  emit_places(out, "parameter_initials", graph, true);
}

/* -1: none. */
static int runs_state(const Graph *graph) {
  for (int i = 0; i < graph->n_states; i++)
    if (graph->states[i].counts_runs) return i;
  return -1;
}

static void emit_training(Text *out, const Program *program) {
  const Graph *graph = program->graph;
  if (!graph->n_parameters) return;
  text_add(out, "  .training = {\n    .info = {.struct_size = sizeof(rnncc_training_info), .tensor_size = "
                "sizeof(rnncc_tensor_info),\n");
  int n_trained = graph->n_parameters - graph->n_statistics;
  text_add(out, "             .n_parameters = %d, .loss = %d, .parameters = parameters,\n", n_trained, graph->loss);
  text_add(out, "             .n_statistics = %d, .statistics = parameters + %d,\n", graph->n_statistics, n_trained);
  if (graph->n_output_gradients)
    text_add(out, "             .n_output_gradients = %d, .output_gradients = output_gradients,\n",
             graph->n_output_gradients);
  if (graph->n_input_gradients)
    text_add(out, "             .n_input_gradients = %d, .input_gradients = input_gradients,\n",
             graph->n_input_gradients);
  text_add(out, "    },\n");
  text_add(out,
           "    .places = parameter_places, .initials = parameter_initials, .trained_bytes = %lld, .bytes = %lld,\n",
           (long long)program->trained_bytes, (long long)program->parameter_bytes);
  text_add(out, "    .runs_state = %d,\n", runs_state(graph));
  text_add(out, "    .backward = backward,\n  },\n");
}

/* ---- the module ---- */

static void emit_info(Text *out, const Program *program, const char *build) {
  const Graph *graph = program->graph;
  int n_dims = dim_given_count(graph->dims);
  text_add(out, "  .info = {\n    .struct_size = sizeof(rnncc_info),\n    .name = ");
  emit_name(out, graph->name);
  text_add(out, ",\n    .model_version = ");
  emit_name(out, graph->version);
  text_add(out, ",\n    .isa = \"%s\",\n    .target = \"%s\",\n", graph->config->target->isa,
           graph->config->target->name);
  text_add(out, "    .weights_sha256 = \"%s\",\n    .build = ", weights_sha256(program));
  emit_name(out, build);
  text_add(out, ",\n    .weights_bytes = %lld,\n    .arena_bytes = %lld,\n", (long long)program->weights_bytes,
           (long long)program->arena_bytes);
  text_add(out, "    .n_dims = %d, .n_inputs = %d, .n_outputs = %d, .n_states = %d,\n", n_dims, graph_own_inputs(graph),
           graph_own_outputs(graph), graph->n_states);
  text_add(out, "    .dim_size = sizeof(rnncc_dim_info), .tensor_size = sizeof(rnncc_tensor_info),\n"
                "    .state_size = sizeof(rnncc_state_info),\n");
  if (n_dims) text_add(out, "    .dims = dims,\n");
  if (graph_own_inputs(graph)) text_add(out, "    .inputs = inputs,\n");
  text_add(out, "    .outputs = outputs,\n");
  if (graph->n_states) text_add(out, "    .states = states,\n");
  if (graph->mutables) text_add(out, "    .n_weights = %d, .weights = weights,\n", graph->mutables->n_weights);
  text_add(out, "  },\n");
}

static int64_t weight_begin(const Value *value) { return value->offset; }

/* Does each constant begin where the one before it ends? Not where another target has some of them. */
static bool weights_are_in_a_row(const Program *program) {
  int64_t end = 0;
  for (int i = 0; i < program->n_weights; end = weight_end(program->weights[i++]))
    if (weight_begin(program->weights[i]) != end) return false;
  return true;
}

static void emit_weight_places(Text *out, const Program *program, const char *name, int64_t place(const Value *value)) {
  if (!program->n_weights) return;
  text_add(out, "\nstatic const size_t %s[] = {", name);
  for (int i = 0; i < program->n_weights; i++)
    text_add(out, "%s%lld,", i % 8 ? " " : "\n  ", (long long)place(program->weights[i]));
  text_add(out, "\n};\n");
}

/* What the module asks of its CPU. AMX only where a kernel uses it, as the system gives its registers on request: a
 * kernel of the network, or perhaps of its derivation, which is another program. */
static uint32_t features_of(const Program *program, bool has_derivation) {
  uint32_t features = program->graph->config->target->cpu_features;
  if (has_derivation) return features;
  for (int i = 0; i < program->n_kernels; i++)
    if (kernel_includes(program->kernels[i].kernel, MATRICES_HEADER)) return features;
  return features & ~(uint32_t)CPU_AMX;
}

void emit_tables(Unit *unit, Program *program, const char *build, const UnitPlace *place) {
  Graph *graph = program->graph;
  Text *out = &unit->text;
  bool in_a_row = weights_are_in_a_row(program);
  text_add(out, "\n/* ---- tables ---- */\n");
  emit_dim_table(out, graph);
  emit_tensors(out, "inputs", graph->inputs, graph_own_inputs(graph));
  emit_tensors(out, "outputs", graph->outputs, graph_own_outputs(graph));
  emit_states(out, graph);
  emit_checks(out, program);
  if (!graph->config->edge) emit_steps(out, program);
  if (!graph->config->edge) emit_weight_places(out, program, "weight_ends", weight_end);
  if (!graph->config->edge && !in_a_row) emit_weight_places(out, program, "weight_begins", weight_begin);
  emit_staged(out, graph);
  emit_parameters(out, graph);
  if (graph->mutables) emit_mutable(out, program, place->derivation);
  int n_data_dims = dim_known_count(graph->dims) - dim_given_count(graph->dims);
  emit_output_shapes(out, graph, "output_shapes", false);
  if (n_data_dims) emit_output_shapes(out, graph, "output_room", true);
  text_add(out, "\nconst Module rnncc_module = {\n");
  emit_info(out, program, build);
  text_add(out, "  .cpu_features = %uu,\n  .weights = rnncc_weights,\n",
           (unsigned)features_of(program, place->derivation != NULL));
  if (program->n_weights && !graph->config->edge)
    text_add(out, "  .weight_ends = weight_ends,%s .n_weights = %d,\n",
             in_a_row ? "" : " .weight_begins = weight_begins,", program->n_weights);
  if (!graph->config->edge) text_add(out, "  .file_weights_bytes = %lld,\n", (long long)program->weights_file->bytes);
  if (graph->n_states) text_add(out, "  .states = state_places,\n");
  if (program->n_checks) text_add(out, "  .checks = checks, .n_checks = %d,\n", program->n_checks);
  if (program->n_calls && !graph->config->edge) text_add(out, "  .steps = steps, .n_steps = %d,\n", program->n_calls);
  if (any_staged(graph)) text_add(out, "  .staged_outputs = staged_outputs,\n");
  if (n_data_dims) text_add(out, "  .n_data_dims = %d,\n  .output_room = output_room,\n", n_data_dims);
  if (!graph->config->edge && program->share_from > 0) text_add(out, "  .share_from = %.3g,\n", program->share_from);
  emit_training(out, program);
  if (graph->mutables) text_add(out, "  .mutable_weights = &mutable_weights,\n");
  if (program->n_parts) text_add(out, "  .parts = parts, .n_parts = %d,\n", program->n_parts);
  text_add(out, "  .output_shapes = output_shapes,\n%s};\n", program->n_parts ? "" : "  .schedule = schedule,\n");
  if (!graph->config->edge && !place->is_derivation) emit_note(out, program, build);
}
