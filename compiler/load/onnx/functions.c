/* SPDX-License-Identifier: MIT */
/* Functions of the model: each call is replaced by the function's nodes. */
#include <string.h>

#include "load/onnx/adapt.h"
#include "load/onnx/wire.h"

enum { MAX_DEPTH = 32, MAX_CALLS = 1 << 16 };

bool onnx_default_domain(const char *domain) { return *onnx_text(domain) == 0 || strcmp(domain, "ai.onnx") == 0; }

int64_t onnx_opset(size_t n, Onnx__OperatorSetIdProto **opsets) {
  for (size_t i = 0; i < n; i++)
    if (onnx_default_domain(opsets[i]->domain)) return opsets[i]->version;
  return NO_OPSET;
}

static bool same_text(const char *a, const char *b) { return strcmp(onnx_text(a), onnx_text(b)) == 0; }

/* Functions of one name may differ in `overload`, field 13 of FunctionProto and 8 of NodeProto. */
static bool same_overload(const Onnx__FunctionProto *function, const Onnx__NodeProto *node) {
  FileBytes a = {.size = 0}, b = {.size = 0};
  unsigned i = 0, j = 0;
  wire_newer_field(&function->base, 13, &i, &a);
  wire_newer_field(&node->base, 8, &j, &b);
  return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

const Onnx__FunctionProto *onnx_function(const OnnxReader *reader, const Onnx__NodeProto *node) {
  for (size_t i = 0; i < reader->model->n_functions; i++) {
    const Onnx__FunctionProto *function = reader->model->functions[i];
    if (same_text(function->name, node->op_type) && same_text(function->domain, node->domain) &&
        same_overload(function, node))
      return function;
  }
  return NULL;
}

static bool check_call(const Draft *draft, const Onnx__FunctionProto *function) {
  if ((size_t)draft->n_inputs > function->n_input)
    error_at(draft->where, EXIT_INVALID, "the call has %d inputs, the function %.80s only %zu", draft->n_inputs,
             draft->op, function->n_input);
  else if ((size_t)draft->n_outputs > function->n_output)
    error_at(draft->where, EXIT_INVALID, "the call has %d outputs, the function %.80s only %zu", draft->n_outputs,
             draft->op, function->n_output);
  else
    return true;
  return false;
}

/* In the function's own nodes, or in those of one that it calls. */
static bool check_calls(const Draft *draft, const Onnx__FunctionProto *function) {
  for (const Scope *scope = draft->scope; scope; scope = scope->function ? scope->caller : scope->outer) {
    if (scope->function != function) continue;
    error_at(draft->where, EXIT_INVALID, "the function %.80s calls itself", draft->op);
    return false;
  }
  return true;
}

static bool declare_inputs(Scope *scope, const Draft *draft, const Onnx__FunctionProto *function) {
  for (int i = 0; i < (int)function->n_input; i++) {
    Name *name = name_declare(&scope->names, function->input[i], draft->where);
    if (!name) return false;
    name->value = i < draft->n_inputs ? draft->inputs[i] : NULL;
    if (!name->value) name->constant = &onnx_absent;
  }
  return true;
}

/* An input of the function is its output, too. False after an error. */
static bool give_input(OnnxReader *reader, const Draft *draft, Name *input, Value *output) {
  if (input->value) draft_node_onto(reader, draft, "Identity", 1, &input->value, output);
  if (input->constant != &onnx_absent) return true;
  error_at(draft->where, EXIT_INVALID, "the output \"%s\" is the input \"%s\" of %.80s, which the call leaves out",
           short_name(reader->arena, output->name), short_name(reader->arena, input->text), draft->op);
  return false;
}

static bool declare_results(OnnxReader *reader, Scope *scope, Draft *draft, const Onnx__FunctionProto *function) {
  scope->results = ARENA_ARRAY(reader->arena, Result, draft->n_outputs);
  for (int i = 0; i < draft->n_outputs; i++) {
    Name *input = name_find(&scope->names, function->output[i]);
    if (!draft->outputs[i]) continue;
    if (input) {
      if (!give_input(reader, draft, input, draft->outputs[i])) return false;
      continue;
    }
    Name *name = name_declare(&scope->names, function->output[i], draft->where);
    if (!name) return false;
    name->value = draft->outputs[i];
    scope->results[scope->n_results++] = (Result){.name = function->output[i], .value = draft->outputs[i]};
  }
  return true;
}

void onnx_inline(OnnxReader *reader, Draft *draft, const Onnx__FunctionProto *function, const Onnx__NodeProto *call) {
  if (!check_call(draft, function) || !check_calls(draft, function)) return;
  if (reader->depth == MAX_DEPTH)
    fatal_at(draft->where, EXIT_LIMIT, "functions call each other more than %d deep", MAX_DEPTH);
  if (++reader->n_calls > MAX_CALLS)
    fatal_at(LOCATION_FILE(reader->file), EXIT_LIMIT, "the model's functions are called more than %d times", MAX_CALLS);
  Scope *scope = ARENA_NEW(reader->arena, Scope);
  int64_t opset = onnx_opset(function->n_opset_import, function->opset_import);
  *scope = (Scope){.names = name_table_new(reader->arena, NULL),
                   .graph = draft->scope->graph,
                   .prefix = arena_format(reader->arena, "%s/", draft->name),
                   .opset = opset != NO_OPSET ? opset : draft->scope->opset,
                   .function = function,
                   .call = call,
                   .caller = draft->scope};
  if (!declare_inputs(scope, draft, function) || !declare_results(reader, scope, draft, function)) return;
  reader->depth++;
  onnx_read_nodes(reader, scope, function->n_node, function->node);
  reader->depth--;
  for (int i = 0; i < scope->n_results; i++)
    if (!scope->results[i].claimed)
      error_at(draft->where, EXIT_INVALID, "no node of the function %.80s makes its output \"%s\"", draft->op,
               short_name(reader->arena, scope->results[i].name));
}
