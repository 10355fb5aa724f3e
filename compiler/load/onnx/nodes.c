/* SPDX-License-Identifier: MIT */
/*
 * The nodes of a graph or function: first all outputs are declared, then inputs are resolved. ONNX requires
 * sorted nodes, but files with unsorted ones exist, and a cycle should be reported as a cycle.
 */
#include <math.h>
#include <string.h>

#include "ir/bodies.h"
#include "ir/op.h"
#include "load/onnx/adapt.h"

static bool is_constant(const Onnx__NodeProto *proto) {
  return strcmp(onnx_text(proto->op_type), "Constant") == 0 && onnx_default_domain(proto->domain);
}

/* The call's value for an output of the function; NULL if `name` is no output, or was already written. */
static Value *claim_result(Scope *scope, const char *name) {
  for (int i = 0; i < scope->n_results; i++) {
    Result *result = &scope->results[i];
    if (result->claimed || strcmp(result->name, name) != 0) continue;
    result->claimed = true;
    return result->value;
  }
  return NULL;
}

/* Of a name that is taken, which is an error, nothing can name the value. */
static Value *declare_output(OnnxReader *reader, Scope *scope, const char *name, Location where) {
  if (*name == 0) return NULL;
  Value *result = claim_result(scope, name);
  if (result) return result;
  Name *declared = name_declare(&scope->names, name, where);
  Value *value = graph_value(scope->graph, onnx_scoped(reader, scope, name), where);
  if (declared) declared->value = value;
  return value;
}

/* A Constant becomes a constant, not a node. As a function's output it is copied to the call's value. */
static bool declare_constant(OnnxReader *reader, Scope *scope, Draft *draft, const Onnx__NodeProto *proto) {
  if (proto->n_output != 1 || !*onnx_text(proto->output[0])) return false;
  const char *name = proto->output[0];
  Constant *constant = ARENA_NEW(reader->arena, Constant);
  constant->name = onnx_scoped(reader, scope, name);
  bool good = onnx_check_references(draft, proto) && onnx_read_constant(reader, scope, proto, draft->where, constant);
  Value *result = claim_result(scope, name);
  if (result) {
    bool known = good && constant->dtype != RNNCC_NONE;
    if (good && !known) onnx_refuse_constant(reader, name, constant);
    Value *value = known ? constant_value(scope->graph, constant) : NULL;
    if (value) draft_node_onto(reader, draft, "Identity", 1, &value, result);
    return true;
  }
  Name *declared = name_declare(&scope->names, name, draft->where);
  if (declared && good) declared->constant = constant;
  return true;
}

/* The draft with its outputs. Its op is NULL if there is nothing left to do. */
static void begin(OnnxReader *reader, Scope *scope, Draft *draft, const Onnx__NodeProto *proto) {
  const char *given = onnx_text(proto->name), *op = onnx_text(proto->op_type);
  const char *name = *given ? given : arena_format(reader->arena, "%s_%d", op, reader->n_made);
  reader->n_made++;
  *draft = (Draft){.op = op, .name = onnx_scoped(reader, scope, name), .scope = scope};
  draft->where = (Location){.file = reader->file, .path = draft->name, .byte = -1};
  if (is_constant(proto) && declare_constant(reader, scope, draft, proto)) {
    draft->op = NULL;
    return;
  }
  draft->n_outputs = (int)proto->n_output;
  draft->outputs = ARENA_ARRAY(reader->arena, Value *, proto->n_output);
  for (int i = 0; i < draft->n_outputs; i++)
    draft->outputs[i] = declare_output(reader, scope, onnx_text(proto->output[i]), draft->where);
}

static bool read_inputs(OnnxReader *reader, Draft *draft, const Onnx__NodeProto *proto) {
  bool good = true;
  draft->n_inputs = (int)proto->n_input;
  draft->inputs = ARENA_ARRAY(reader->arena, Value *, proto->n_input);
  for (int i = 0; i < draft->n_inputs; i++)
    good &= onnx_value(reader, draft->scope, onnx_text(proto->input[i]), draft->where, &draft->inputs[i]);
  return good;
}

static bool read_attributes(OnnxReader *reader, Draft *draft, const Onnx__NodeProto *proto) {
  bool good = onnx_check_references(draft, proto);
  draft->attributes = ARENA_ARRAY(reader->arena, Attribute, proto->n_attribute);
  for (size_t i = 0; i < proto->n_attribute; i++) good &= onnx_read_attribute(reader, draft, proto->attribute[i]);
  return good;
}

static void adapt_and_commit(OnnxReader *reader, Draft *draft, const char *domain, bool contrib) {
  reader->unsupported.follows = false;
  bool good = contrib ? contrib_adapt(reader, draft, domain) : adapt(reader, draft);
  reader->unsupported.follows = false;
  if (good) onnx_commit(reader, draft);
}

/* Adds the draft's nodes to the graph, unless one of them has an error. */
static void make_nodes(OnnxReader *reader, Draft *draft, const Onnx__NodeProto *proto) {
  const Onnx__FunctionProto *function = onnx_function(reader, proto);
  bool good = read_inputs(reader, draft, proto);
  if (function) {
    good &= onnx_check_references(draft, proto);
    if (good) onnx_inline(reader, draft, function, proto);
    return;
  }
  bool contrib = contrib_knows(onnx_text(proto->domain), draft->op);
  if (!onnx_default_domain(proto->domain) && !contrib) {
    contrib_unknown(reader, draft, proto->domain);
    return;
  }
  if (!contrib && !adapt_knows(draft)) {
    const char *closest = op_closest(draft->op);
    unsupported_add(&reader->unsupported, draft->name, "the operator %.80s%s%s%s", draft->op,
                    closest ? " (did you mean " : "", closest ? closest : "", closest ? "?)" : "");
    return;
  }
  good &= read_attributes(reader, draft, proto);
  if (good) adapt_and_commit(reader, draft, proto->domain, contrib);
}

/* Outputs that no node makes are not known. */
static void finish(OnnxReader *reader, Draft *draft, const Onnx__NodeProto *proto) {
  Value **outputs = arena_copy(reader->arena, draft->outputs, (size_t)draft->n_outputs * sizeof *outputs);
  int n_outputs = draft->n_outputs;
  make_nodes(reader, draft, proto);
  for (int i = 0; i < n_outputs; i++)
    if (outputs[i]) outputs[i]->refused = !outputs[i]->producer && !onnx_sequence(reader, outputs[i]);
}

void onnx_read_nodes(OnnxReader *reader, Scope *scope, size_t n, Onnx__NodeProto **nodes) {
  Draft *drafts = ARENA_ARRAY(reader->arena, Draft, n);
  for (size_t i = 0; i < n; i++) begin(reader, scope, &drafts[i], nodes[i]);
  for (size_t i = 0; i < n; i++)
    if (drafts[i].op) finish(reader, &drafts[i], nodes[i]);
}

static void trim(Value *const *values, int *n, int least) {
  while (*n > least && !values[*n - 1]) --*n;
}

/* Element types are names in our attributes and numbers in ONNX's. */
static bool name_type(OnnxReader *reader, const Draft *draft, Attribute *attribute) {
  const OnnxType *type = onnx_type((int)(attribute->i == (int)attribute->i ? attribute->i : 0));
  if (!type) {
    error_at(attribute->where, EXIT_INVALID, "`%s` of %s: expected an element type, found %lld", attribute->name,
             draft->op, (long long)attribute->i);
    return false;
  }
  if (type->dtype == RNNCC_NONE) {
    unsupported_add(&reader->unsupported, draft->name, "`%s`=%s of %s", attribute->name, type->name, draft->op);
    return false;
  }
  attribute->kind = ATTRIBUTE_STRING;
  attribute->s = dtype_name(type->dtype);
  return true;
}

/* JSON cannot write others, and ONNX does not define their meaning. */
static bool is_finite(const Attribute *attribute) {
  if (attribute->kind == ATTRIBUTE_FLOAT) return isfinite(attribute->f);
  for (size_t i = 0; attribute->kind == ATTRIBUTE_FLOATS && i < attribute->count; i++)
    if (!isfinite(attribute->floats[i])) return false;
  return true;
}

static void unknown_attribute(OnnxReader *reader, const Draft *draft, const OpInfo *op, const char *name) {
  char known[512];
  op_list_attributes(op, known, sizeof known);
  unsupported_add(&reader->unsupported, draft->name, "the attribute `%.80s` of %s (it has %s)", name, op->name,
                  *known ? known : "none");
}

static void unknown_word(OnnxReader *reader, const Draft *draft, const AttributeSpec *spec, const Attribute *given) {
  char words[256];
  op_list_words(spec, words, sizeof words);
  unsupported_add(&reader->unsupported, draft->name, "`%s`=\"%.80s\" of %s (it may be %s)", given->name, given->s,
                  draft->op, words);
}

static bool fit_attribute(OnnxReader *reader, const Draft *draft, const OpInfo *op, Attribute *attribute) {
  const AttributeSpec *spec = op_attribute(op, attribute_find(attribute->name));
  if (!spec) {
    unknown_attribute(reader, draft, op, attribute->name);
    return false;
  }
  if (!is_finite(attribute)) {
    unsupported_add(&reader->unsupported, draft->name, "an infinite or NaN `%s` of %s", attribute->name, op->name);
    return false;
  }
  if (spec->kind == ATTRIBUTE_TYPE && attribute->kind == ATTRIBUTE_INT) return name_type(reader, draft, attribute);
  if (spec->kind == ATTRIBUTE_WORD && attribute->kind == ATTRIBUTE_STRING && attribute_word(spec, attribute->s) < 0) {
    unknown_word(reader, draft, spec, attribute);
    return false;
  }
  return true;
}

/* An element type of 0, UNDEFINED, is none: writers of all defaults give it. */
static void drop_undefined_types(Draft *draft, const OpInfo *op) {
  for (int i = draft->n_attributes - 1; i >= 0; i--) {
    const Attribute *attribute = &draft->attributes[i];
    const AttributeSpec *spec = op_attribute(op, attribute_find(attribute->name));
    bool undefined = attribute->kind == ATTRIBUTE_INT && attribute->i == 0;
    if (spec && spec->kind == ATTRIBUTE_TYPE && !spec->required && undefined) draft_drop(draft, attribute->name);
  }
}

/* False, and reports it, for optional inputs and outputs of ONNX that the op's row does not have. */
static bool fit_counts(OnnxReader *reader, const Draft *draft, const OpInfo *op) {
  if (op->max_inputs >= 0 && draft->n_inputs > op->max_inputs) {
    unsupported_add(&reader->unsupported, draft->name, "input %d of %s (it has %d)", op->max_inputs, op->name,
                    op->max_inputs);
    return false;
  }
  if (op->max_outputs >= 0 && draft->n_outputs > op->max_outputs) {
    unsupported_add(&reader->unsupported, draft->name, "output %d of %s (it has %d)", op->max_outputs, op->name,
                    op->max_outputs);
    return false;
  }
  return true;
}

/* False, and reports it, if an input is a sequence: operators of sequences are gone by now. */
static bool reads_tensors(OnnxReader *reader, const Draft *draft) {
  for (int i = 0; i < draft->n_inputs; i++) {
    if (!onnx_sequence(reader, draft->inputs[i])) continue;
    unsupported_add(&reader->unsupported, draft->name, "a sequence as input %d of %s", i, draft->op);
    return false;
  }
  return true;
}

Node *onnx_commit(OnnxReader *reader, Draft *draft) {
  const OpInfo *op = op_find(draft->op);
  if (!op) {
    unsupported_add(&reader->unsupported, draft->name, "the operator %.80s", draft->op);
    return NULL;
  }
  trim(draft->inputs, &draft->n_inputs, op->min_inputs);
  trim(draft->outputs, &draft->n_outputs, 0);
  drop_undefined_types(draft, op);
  bool good = fit_counts(reader, draft, op) && reads_tensors(reader, draft);
  for (int i = 0; i < draft->n_attributes; i++) good &= fit_attribute(reader, draft, op, &draft->attributes[i]);
  if (!good) return NULL;
  Node *node = graph_node(draft->scope->graph, op, draft->name, draft->n_inputs, draft->n_outputs);
  node->where = draft->where;
  node->attributes = draft->attributes;
  node->n_attributes = draft->n_attributes;
  for (int i = 0; i < draft->n_inputs; i++) node->inputs[i] = draft->inputs[i];
  for (int i = 0; i < draft->n_outputs; i++)
    if (draft->outputs[i]) graph_set_output(node, i, draft->outputs[i]);
  if (!op_check_node(node)) {
    graph_withdraw(draft->scope->graph, node);
    return NULL;
  }
  node_capture(draft->scope->graph, node);
  return node;
}
