/* SPDX-License-Identifier: MIT */
/* What a graph declares besides its nodes: initializers, inputs with their types and named dims, outputs. */
#include <inttypes.h>
#include <string.h>

#include "load/onnx/reader.h"

static const int64_t MAX_TENSOR_BYTES = (int64_t)1 << 40; /* of an input at the dims' maxima */

static Location place(const OnnxReader *reader, const char *name) {
  return (Location){.file = reader->file, .path = name, .byte = -1};
}

/* Of the index-th input, output or initializer: "input 2", or of a body "loop.body input 2". */
static Location place_of(const OnnxReader *reader, const Scope *scope, const char *role, size_t index) {
  const char *body = scope->graph == reader->graph ? "" : scope->graph->name;
  return place(reader, arena_format(reader->arena, "%s%s%s %zu", body, *body ? " " : "", role, index));
}

const char *onnx_scoped(const OnnxReader *reader, const Scope *scope, const char *name) {
  return *scope->prefix ? arena_format(reader->arena, "%s%s", scope->prefix, name) : name;
}

static void declare_constant(OnnxReader *reader, Scope *scope, const Onnx__TensorProto *proto, size_t index) {
  const char *name = onnx_text(proto->name);
  Location where = place_of(reader, scope, "initializer", index), of_tensor = *name ? place(reader, name) : where;
  Constant *constant = ARENA_NEW(reader->arena, Constant);
  bool good = onnx_read_tensor(reader, proto, onnx_scoped(reader, scope, name), of_tensor, constant);
  constant->is_weight = true;
  Name *declared = name_declare(&scope->names, name, where);
  if (declared && good) declared->constant = constant;
}

void onnx_declare_constants(OnnxReader *reader, Scope *scope, const Onnx__GraphProto *proto) {
  for (size_t i = 0; i < proto->n_initializer; i++) declare_constant(reader, scope, proto->initializer[i], i);
  for (size_t i = 0; i < proto->n_sparse_initializer; i++) {
    const Onnx__TensorProto *values = proto->sparse_initializer[i]->values;
    const char *name = values ? onnx_text(values->name) : "";
    Location where = place_of(reader, scope, "sparse initializer", i);
    unsupported_add(&reader->unsupported, *name ? name : where.path, "a sparse initializer");
    if (*name)
      name_declare(&scope->names, name, where);
    else
      scope->names.has_nameless = true;
  }
}

/* An input's axis without a length. */
typedef struct OpenAxis {
  const char *input;
  int axis, rank;
} OpenAxis;

/* The first axis of an input that has this name; false: none has. */
static bool axis_named(const OnnxReader *reader, const char *name, OpenAxis *found) {
  const Onnx__GraphProto *graph = reader->model->graph;
  for (size_t i = 0; i < graph->n_input; i++) {
    const Onnx__TypeProto *type = graph->input[i]->type;
    bool is_tensor = type && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    const Onnx__TensorShapeProto *shape = is_tensor ? type->tensor_type->shape : NULL;
    for (size_t axis = 0; shape && axis < shape->n_dim; axis++) {
      bool named = shape->dim[axis]->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
      if (!named || strcmp(onnx_text(shape->dim[axis]->dim_param), name) != 0) continue;
      *found = (OpenAxis){onnx_text(graph->input[i]->name), (int)axis, (int)shape->n_dim};
      return true;
    }
  }
  return false;
}

static const Dim *named_dim(OnnxReader *reader, const char *name, const OpenAxis *open);

/* The bounds of a dim that is named as a sum of others, "past + new", as Hugging Face's exporter names a mask's axis.
 * False if it is not, or a part is no dim of the inputs. */
static bool sum_bounds(OnnxReader *reader, const char *name, DimBounds *bounds) {
  static const char plus[] = " + ";
  *bounds = (DimBounds){.multiple = 1};
  if (!strstr(name, plus)) return false;
  for (const char *part = name, *end; part; part = end ? end + strlen(plus) : NULL) {
    end = strstr(part, plus);
    const char *own = arena_format(reader->arena, "%.*s", (int)(end ? end - part : (ptrdiff_t)strlen(part)), part);
    OpenAxis open;
    if (!axis_named(reader, own, &open)) return false;
    const Dim *dim = named_dim(reader, own, &open);
    bounds->min += dim_lower(dim);
    bounds->opt += dim_optimum(dim);
    bounds->max += dim_upper(dim);
  }
  return true;
}

/* The named dim, which is bounded by the command line, or by the dims that it is the sum of, or else by what is
 * assumed. */
static const Dim *named_dim(OnnxReader *reader, const char *name, const OpenAxis *open) {
  DimTable *dims = reader->graph->dims;
  DimBounds bounds;
  const DimSymbol *symbol = dim_symbol_find(dims, name);
  const Setting *set = symbol ? NULL : settings_find(reader->settings, SETTING_DIM, name);
  if (set)
    bounds = set->dim;
  else if (!symbol && !sum_bounds(reader, name, &bounds))
    bounds = dim_assume(&reader->assumed, reader->settings, name, open->input, open->axis, open->rank);
  if (!symbol) symbol = dim_symbol_add(dims, name, bounds);
  return dim_symbol(dims, symbol);
}

/* An axis without extent and name is named after its input. NULL after an error. */
static const Dim *read_axis(OnnxReader *reader, const Onnx__TensorShapeProto *shape, const char *input, int axis) {
  const Onnx__TensorShapeProto__Dimension *proto = shape->dim[axis];
  const OpenAxis open = {input, axis, (int)shape->n_dim};
  switch (proto->value_case) {
  case ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE:
    if (proto->dim_value >= 0) return dim_const(reader->graph->dims, proto->dim_value);
    if (proto->dim_value == -1) break; /* some exporters write -1 for an unknown axis */
    error_at(place(reader, input), EXIT_INVALID, "axis %d is %" PRId64 " long; expected 0 or more, or a name", axis,
             proto->dim_value);
    return NULL;
  case ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM:
    if (*onnx_text(proto->dim_param)) return named_dim(reader, proto->dim_param, &open);
    break;
  default:
    break;
  }
  return named_dim(reader, arena_format(reader->arena, "%s_%d", input, axis), &open);
}

static const char *kind_of(const Onnx__TypeProto *type) {
  static const struct {
    Onnx__TypeProto__ValueCase value;
    const char *name;
  } KINDS[] = {{ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE, "a sequence"},
               {ONNX__TYPE_PROTO__VALUE_MAP_TYPE, "a map"},
               {ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE, "an optional value"},
               {ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE, "a sparse tensor"}};
  for (size_t i = 0; type && i < sizeof KINDS / sizeof *KINDS; i++)
    if (KINDS[i].value == type->value_case) return KINDS[i].name;
  return NULL;
}

/* The element type; RNNCC_NONE after an error or what is not supported. */
static DType read_dtype_of(OnnxReader *reader, const Onnx__ValueInfoProto *proto, const char *role) {
  const char *name = onnx_text(proto->name), *kind = kind_of(proto->type);
  if (kind) {
    unsupported_add(&reader->unsupported, name, "%s as a graph's %s", kind, role);
    return RNNCC_NONE;
  }
  bool is_tensor = proto->type && proto->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
  int code = is_tensor ? proto->type->tensor_type->elem_type : 0;
  const OnnxType *type = onnx_type(code);
  if (!type && !code)
    error_at(place(reader, name), EXIT_INVALID, "the %s has no element type", role);
  else if (!type)
    error_at(place(reader, name), EXIT_UNSUPPORTED, "the %s is of element type %d, which ONNX does not have", role,
             code);
  else if (type->dtype == RNNCC_NONE)
    unsupported_add(&reader->unsupported, name, "the element type %s of a graph's %s", type->name, role);
  return type ? type->dtype : RNNCC_NONE;
}

/* Sets rank and shape; axes that are not known stay NULL if the input becomes a constant. False after an error. */
static bool read_input_shape(OnnxReader *reader, const Onnx__ValueInfoProto *proto, Value *value, bool frozen) {
  const Onnx__TensorShapeProto *shape = proto->type->tensor_type->shape;
  if (!shape) {
    error_at(value->where, EXIT_UNSUPPORTED, "the input has no shape in the file; its rank must be known");
    return false;
  }
  if (shape->n_dim > MAX_RANK) {
    error_at(value->where, EXIT_UNSUPPORTED, "the input has rank %zu; at most %d is supported", shape->n_dim, MAX_RANK);
    return false;
  }
  bool good = true;
  value->rank = (int)shape->n_dim;
  value->shape = ARENA_ARRAY(reader->arena, const Dim *, value->rank);
  for (int axis = 0; axis < value->rank; axis++) {
    bool fixed = shape->dim[axis]->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    if (fixed || !frozen) value->shape[axis] = read_axis(reader, shape, value->name, axis);
    good &= value->shape[axis] || (frozen && !fixed);
  }
  if (good && !frozen && value_max_bytes(value) > MAX_TENSOR_BYTES) {
    error_at(value->where, EXIT_LIMIT, "the tensor may have more than %" PRId64 " bytes", MAX_TENSOR_BYTES);
    return false;
  }
  return good;
}

static void read_input_type(OnnxReader *reader, const Onnx__ValueInfoProto *proto, Value *value, bool frozen) {
  value->dtype = read_dtype_of(reader, proto, "input");
  value->refused = value->dtype == RNNCC_NONE || !read_input_shape(reader, proto, value, frozen);
  if (value->refused) value->rank = -1;
}

static void declare_input(OnnxReader *reader, Scope *scope, const Onnx__ValueInfoProto *proto, Location where) {
  const char *name = onnx_text(proto->name);
  const Setting *frozen = settings_find(reader->settings, SETTING_FREEZE, name);
  Name *declared = name_declare(&scope->names, name, where);
  if (!declared) return;
  Value *value = graph_value(scope->graph, name, place(reader, name));
  declared->value = value;
  value->is_input = true;
  read_input_type(reader, proto, value, frozen != NULL);
  if (!frozen)
    scope->graph->inputs[scope->graph->n_inputs++] = value;
  else if (!value->refused)
    settings_freeze(scope->graph, frozen, value);
}

/* A body's inputs get their types from the node that it belongs to. */
static void declare_body_input(OnnxReader *reader, Scope *scope, const char *name, Location where) {
  Name *declared = name_declare(&scope->names, name, where);
  Value *value = graph_value(scope->graph, onnx_scoped(reader, scope, name), where);
  if (declared) declared->value = value;
  value->is_input = true;
  scope->graph->inputs[scope->graph->n_inputs++] = value;
}

static bool same_default_type(const Onnx__TypeProto__Tensor *declared, const Constant *given, Location where) {
  const OnnxType *type = onnx_type(declared->elem_type);
  if (!type || type->dtype == RNNCC_NONE || given->dtype == RNNCC_NONE || type->dtype == given->dtype) return true;
  error_at(where, EXIT_INVALID, "expected an initializer of type %s, which is the input's, found %s",
           dtype_name(type->dtype), dtype_name(given->dtype));
  return false;
}

/* The initializer of an input has its type, and the extents that are told. */
static void check_default(const Onnx__ValueInfoProto *proto, const Constant *given, Location where) {
  bool is_tensor = proto->type && proto->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
  if (!is_tensor || !same_default_type(proto->type->tensor_type, given, where)) return;
  const Onnx__TensorShapeProto *shape = proto->type->tensor_type->shape;
  if (shape && shape->n_dim != (size_t)given->rank)
    error_at(where, EXIT_INVALID, "expected an initializer of rank %zu, which is the input's, found %d", shape->n_dim,
             given->rank);
  for (int axis = 0; shape && shape->n_dim == (size_t)given->rank && axis < given->rank; axis++) {
    const Onnx__TensorShapeProto__Dimension *dim = shape->dim[axis];
    bool fixed = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && dim->dim_value >= 0;
    if (fixed && dim->dim_value != given->shape[axis])
      error_at(where, EXIT_INVALID, "expected an initializer with %lld on axis %d, which the input has, found %lld",
               (long long)dim->dim_value, axis, (long long)given->shape[axis]);
  }
}

/* An initializer is an input's default. A module cannot override it, so the input is a constant. */
void onnx_declare_inputs(OnnxReader *reader, Scope *scope, const Onnx__GraphProto *proto) {
  scope->graph->inputs = ARENA_ARRAY(reader->arena, Value *, proto->n_input);
  for (size_t i = 0; i < proto->n_input; i++) {
    const char *name = onnx_text(proto->input[i]->name);
    const Name *known = *name ? name_find(&scope->names, name) : NULL;
    Location where = place_of(reader, scope, "input", i);
    if (known && known->constant && !known->value) check_default(proto->input[i], known->constant, where);
    if (known && !known->value) continue;
    if (scope->graph == reader->graph)
      declare_input(reader, scope, proto->input[i], where);
    else
      declare_body_input(reader, scope, name, where);
  }
}

const Constant onnx_absent = {.name = ""};

void onnx_refuse_constant(OnnxReader *reader, const char *place, const Constant *constant) {
  unsupported_add(&reader->unsupported, place, "the element type %s of a constant", constant->dtype_name);
}

bool onnx_value(OnnxReader *reader, Scope *scope, const char *name, Location where, Value **value) {
  *value = NULL;
  if (*name == 0) return true;
  Name *found = name_resolve(&scope->names, name, where);
  if (!found) return false;
  if (found->constant == &onnx_absent) return true;
  if (!found->value && found->constant && found->constant->dtype == RNNCC_NONE)
    onnx_refuse_constant(reader, name, found->constant);
  else if (!found->value && found->constant)
    found->value = constant_value(scope->graph, found->constant);
  if (!found->value) found->constant = NULL; /* its error is told */
  return (*value = found->value) != NULL;
}

static bool listed(const Graph *graph, const Value *value) {
  for (int i = 0; i < graph->n_outputs; i++)
    if (graph->outputs[i] == value) return true;
  return false;
}

bool onnx_read_outputs(OnnxReader *reader, Scope *scope, const Onnx__GraphProto *proto) {
  Graph *graph = scope->graph;
  bool of_model = graph == reader->graph, good = true;
  graph->outputs = ARENA_ARRAY(reader->arena, Value *, proto->n_output);
  for (size_t i = 0; i < proto->n_output; i++) {
    const char *name = onnx_text(proto->output[i]->name);
    bool of_other_kind = of_model && kind_of(proto->output[i]->type);
    if (of_other_kind) read_dtype_of(reader, proto->output[i], "output");
    Location where = place_of(reader, scope, "output", i);
    Value *value = NULL;
    if (!*name) error_at(where, EXIT_INVALID, "the name is empty");
    if (!*name || !onnx_value(reader, scope, name, where, &value)) {
      good = false;
      continue;
    }
    if (onnx_sequence(reader, value) && !of_other_kind && !onnx_is_carried(reader, graph, value))
      unsupported_add(&reader->unsupported, name, "a sequence as a %s output", of_model ? "graph's" : "body's");
    if (!value) {
      error_at(where, EXIT_INVALID, "the result \"%s\" is an input that the function's call leaves out",
               short_name(reader->arena, name));
      good = false;
    } else if (of_model && listed(graph, value)) {
      error_at(where, EXIT_INVALID, "the output \"%s\" is listed twice", short_name(reader->arena, name));
    } else {
      graph->outputs[graph->n_outputs++] = value;
    }
  }
  return good;
}
