/* SPDX-License-Identifier: MIT */
/* A node's attributes, and the value of a Constant node, which is an attribute. */
#include <string.h>

#include "load/onnx/reader.h"
#include "load/onnx/wire.h"

/* The oldest files have no type: the field that is present counts. */
static Onnx__AttributeProto__AttributeType type_of(const Onnx__AttributeProto *proto) {
  if (proto->has_type) return proto->type;
  if (proto->has_f) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
  if (proto->has_i) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
  if (proto->has_s) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
  if (proto->t) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
  if (proto->g) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH;
  if (proto->n_floats) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS;
  if (proto->n_strings) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS;
  return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
}

static const Onnx__AttributeProto *find_attribute(size_t n, Onnx__AttributeProto **attributes, const char *name) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(onnx_text(attributes[i]->name), name) == 0) return attributes[i];
  return NULL;
}

/* Reads FunctionProto.attribute_proto, which is newer than Debian's onnx.proto. */
static FunctionDefaults *read_defaults(OnnxReader *reader, const Onnx__FunctionProto *function) {
  FunctionDefaults *defaults = ARENA_NEW(reader->arena, FunctionDefaults);
  FileBytes bytes;
  size_t n = 0;
  for (unsigned i = 0; wire_newer_field(&function->base, WIRE_ATTRIBUTE_DEFAULTS, &i, &bytes);) n++;
  *defaults = (FunctionDefaults){function, n, ARENA_ARRAY(reader->arena, Onnx__AttributeProto *, n), reader->defaults};
  n = 0;
  for (unsigned i = 0; wire_newer_field(&function->base, WIRE_ATTRIBUTE_DEFAULTS, &i, &bytes);)
    defaults->attributes[n++] =
        (void *)wire_read(reader->arena, reader->file, bytes, &onnx__attribute_proto__descriptor);
  return reader->defaults = defaults;
}

/* What stands for an attribute that a call leaves out; NULL: nothing. */
static const Onnx__AttributeProto *default_of(OnnxReader *reader, const Onnx__FunctionProto *function,
                                              const char *name) {
  const FunctionDefaults *defaults = reader->defaults;
  while (defaults && defaults->function != function) defaults = defaults->next;
  if (!defaults) defaults = read_defaults(reader, function);
  return find_attribute(defaults->n, defaults->attributes, name);
}

/* The function's body that nodes of the scope are in; NULL: none's. */
static const Scope *function_around(const Scope *scope) {
  while (scope && !scope->function) scope = scope->outer;
  return scope;
}

/* The attribute itself, or the one that it refers to in a function's call: if the call gives none, or hands on one that
 * its own caller gives none for, the function's default. NULL: none. */
static const Onnx__AttributeProto *argument_of(OnnxReader *reader, const Scope *scope,
                                               const Onnx__AttributeProto *proto) {
  if (!proto || !*onnx_text(proto->ref_attr_name)) return proto;
  scope = function_around(scope);
  if (!scope) return NULL;
  const Onnx__AttributeProto *given =
      find_attribute(scope->call->n_attribute, scope->call->attribute, proto->ref_attr_name);
  const Onnx__AttributeProto *found = argument_of(reader, scope->caller, given);
  return found ? found : default_of(reader, scope->function, proto->ref_attr_name);
}

/* NULL after an error. */
static const char *text_of(OnnxReader *reader, const Attribute *attribute, ProtobufCBinaryData bytes) {
  if (memchr(bytes.data ? bytes.data : (const uint8_t *)"", 0, bytes.len)) {
    error_at(attribute->where, EXIT_INVALID, "the text of `%.80s` has a NUL in it", attribute->name);
    return NULL;
  }
  return arena_format(reader->arena, "%.*s", (int)bytes.len, bytes.data ? (const char *)bytes.data : "");
}

static bool read_strings(OnnxReader *reader, Attribute *attribute, const Onnx__AttributeProto *proto) {
  attribute->kind = ATTRIBUTE_STRINGS;
  attribute->count = proto->n_strings;
  attribute->strings = ARENA_ARRAY(reader->arena, const char *, proto->n_strings);
  for (size_t i = 0; i < proto->n_strings; i++) {
    attribute->strings[i] = text_of(reader, attribute, proto->strings[i]);
    if (!attribute->strings[i]) return false;
  }
  return true;
}

static bool read_floats(OnnxReader *reader, Attribute *attribute, const Onnx__AttributeProto *proto) {
  attribute->kind = ATTRIBUTE_FLOATS;
  attribute->count = proto->n_floats;
  attribute->floats = ARENA_ARRAY(reader->arena, double, proto->n_floats);
  for (size_t i = 0; i < proto->n_floats; i++) attribute->floats[i] = (double)proto->floats[i];
  return true;
}

static bool read_tensor(OnnxReader *reader, Draft *draft, Attribute *attribute, const Onnx__TensorProto *proto) {
  Constant *constant = ARENA_NEW(reader->arena, Constant);
  if (!onnx_read_tensor(reader, proto, attribute->name, attribute->where, constant)) return false;
  if (constant->dtype == RNNCC_NONE) {
    onnx_refuse_constant(reader, draft->name, constant);
    return false;
  }
  attribute->kind = ATTRIBUTE_TENSOR;
  attribute->tensor = constant_value(reader->graph, constant);
  return attribute->tensor != NULL;
}

static bool read_body(OnnxReader *reader, Draft *draft, Attribute *attribute, const Onnx__GraphProto *proto) {
  attribute->kind = ATTRIBUTE_GRAPH;
  attribute->graph =
      onnx_read_body(reader, draft, proto, arena_format(reader->arena, "%s.%s", draft->name, attribute->name));
  return attribute->graph != NULL;
}

/* The message that the attribute's type requires. */
static bool present(Location where, const char *name, const void *message) {
  if (!message) error_at(where, EXIT_INVALID, "the attribute `%.80s` has no value of its kind", name);
  return message != NULL;
}

static bool read_value(OnnxReader *reader, Draft *draft, Attribute *attribute, const Onnx__AttributeProto *proto) {
  switch (type_of(proto)) {
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
    attribute->kind = ATTRIBUTE_INT;
    attribute->i = proto->i;
    return true;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
    attribute->kind = ATTRIBUTE_FLOAT;
    attribute->f = (double)proto->f;
    return true;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING:
    attribute->kind = ATTRIBUTE_STRING;
    attribute->s = text_of(reader, attribute, proto->s);
    return attribute->s != NULL;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS:
    attribute->kind = ATTRIBUTE_INTS;
    attribute->count = proto->n_ints;
    attribute->ints = proto->ints;
    return true;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS:
    return read_floats(reader, attribute, proto);
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS:
    return read_strings(reader, attribute, proto);
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR:
    return present(draft->where, attribute->name, proto->t) && read_tensor(reader, draft, attribute, proto->t);
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH:
    return present(draft->where, attribute->name, proto->g) && read_body(reader, draft, attribute, proto->g);
  default:
    unsupported_add(&reader->unsupported, draft->name, "the kind of the attribute `%.80s` of %s", attribute->name,
                    draft->op);
    return false;
  }
}

bool onnx_check_references(const Draft *draft, const Onnx__NodeProto *proto) {
  bool good = true;
  for (size_t i = 0; i < proto->n_attribute && !function_around(draft->scope); i++) {
    const Onnx__AttributeProto *attribute = proto->attribute[i];
    if (!*onnx_text(attribute->ref_attr_name)) continue;
    error_at(draft->where, EXIT_INVALID,
             "`%.80s` of %s refers to the attribute `%.80s` of a function's call, but the node is in no function",
             onnx_text(attribute->name), draft->op, attribute->ref_attr_name);
    good = false;
  }
  return good;
}

/* What an empty Optional would hold, which no tensor depends on. */
static bool is_type_of_nothing(const Draft *draft, const Onnx__AttributeProto *given) {
  return type_of(given) == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TYPE_PROTO && strcmp(draft->op, "Optional") == 0;
}

bool onnx_read_attribute(OnnxReader *reader, Draft *draft, const Onnx__AttributeProto *proto) {
  const Onnx__AttributeProto *given = argument_of(reader, draft->scope, proto);
  if (!given || is_type_of_nothing(draft, given)) return true;
  Attribute *attribute = &draft->attributes[draft->n_attributes];
  *attribute = (Attribute){.name = onnx_text(proto->name), .where = draft->where};
  bool good = read_value(reader, draft, attribute, given);
  draft->n_attributes += good;
  return good;
}

static const void *floats(OnnxReader *reader, const float *given, size_t n) {
  return arena_copy(reader->arena, given, n * sizeof *given);
}

/* A list of n elements, or with rank 0 one number. */
static bool set_constant(Constant *constant, DType dtype, int rank, size_t n, const void *data) {
  constant->dtype = dtype;
  constant->dtype_name = dtype_name(dtype);
  constant->rank = rank;
  constant->count = n;
  constant->data = data;
  if (rank) constant->shape[0] = (int64_t)n;
  return true;
}

bool onnx_read_constant(OnnxReader *reader, const Scope *scope, const Onnx__NodeProto *proto, Location where,
                        Constant *constant) {
  const Onnx__AttributeProto *given = proto->n_attribute == 1 ? argument_of(reader, scope, proto->attribute[0]) : NULL;
  const char *name = constant->name;
  if (proto->n_attribute != 1)
    error_at(where, EXIT_INVALID, "expected one attribute of Constant, its value; found %zu", proto->n_attribute);
  *constant = (Constant){.name = name, .where = where, .shape = ARENA_ARRAY(reader->arena, int64_t, 1)};
  switch (given ? type_of(given) : ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED) {
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR:
    return present(where, onnx_text(given->name), given->t) &&
           onnx_read_tensor(reader, given->t, name, where, constant);
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
    return set_constant(constant, RNNCC_I64, 0, 1, arena_copy(reader->arena, &given->i, sizeof given->i));
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
    return set_constant(constant, RNNCC_F32, 0, 1, floats(reader, &given->f, 1));
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS:
    return set_constant(constant, RNNCC_I64, 1, given->n_ints,
                        arena_copy(reader->arena, given->ints, given->n_ints * sizeof *given->ints));
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS:
    return set_constant(constant, RNNCC_F32, 1, given->n_floats, floats(reader, given->floats, given->n_floats));
  default:
    if (proto->n_attribute == 1)
      unsupported_add(&reader->unsupported, name, "a Constant of `%.80s`", onnx_text(proto->attribute[0]->name));
    return false;
  }
}
