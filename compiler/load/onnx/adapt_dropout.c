/* SPDX-License-Identifier: MIT */
/* Dropout: nothing where it does not train; else elements are dropped at random, and the others scaled. */
#include "ir/tensor.h"
#include "load/onnx/adapt.h"

/* False, and reports it, if the number is not known at compile time. */
static bool known_number(OnnxReader *reader, const Draft *draft, const Value *value, double *number) {
  if (value_number(value, number)) return true;
  unsupported_add(&reader->unsupported, draft->name,
                  "Dropout whose input `%.80s` is not known at compile time (--freeze makes an input a constant)",
                  value->name);
  return false;
}

/* *trains: is any element dropped? False after an error. */
static bool read_mode(OnnxReader *reader, const Draft *draft, bool *trains) {
  const Value *ratio = draft_input(draft, 1), *mode = draft_input(draft, 2);
  double number = 0;
  *trains = false;
  if (!mode) return true;
  if (!known_number(reader, draft, mode, &number)) return false;
  *trains = number != 0 && !(ratio && value_number(ratio, &number) && number == 0);
  return true;
}

/* Nothing is dropped: the mask is 1 everywhere, before opset 10 as a number. */
static void write_mask(OnnxReader *reader, Draft *draft) {
  Draft fill = {.op = "ConstantOfShape", .name = draft->name, .where = draft->where, .scope = draft->scope};
  DType dtype = draft->scope->opset < 10 ? draft_dtype(reader, draft, draft->inputs[0]) : RNNCC_BOOL;
  Value *shape = draft_node(reader, draft, "Shape", 1, draft->inputs);
  Attribute *value = ARENA_NEW(reader->arena, Attribute);
  int64_t one = 1;
  Tensor *tensor = tensor_new(reader->arena, dtype == RNNCC_NONE ? RNNCC_F32 : dtype, 1, &one);
  tensor_set(tensor, 0, 1);
  Constant constant = {.name = "value", .dtype = tensor->dtype, .rank = 1, .shape = &one, .count = 1};
  constant.data = tensor->data;
  *value = (Attribute){.name = "value", .kind = ATTRIBUTE_TENSOR, .where = draft->where};
  value->tensor = constant_value(reader->graph, &constant);
  fill.attributes = value;
  fill.n_attributes = 1;
  draft_set_input(reader, &fill, 0, shape);
  fill.outputs = arena_copy(reader->arena, &draft->outputs[1], sizeof(Value *));
  fill.n_outputs = 1;
  onnx_commit(reader, &fill);
}

/* A tensor like x, uniform in [0, 1). */
static Value *draw_like(OnnxReader *reader, const Draft *draft, Value *x, const Attribute *seed) {
  Draft like = {.op = "RandomUniformLike", .name = draft->name, .where = draft->where, .scope = draft->scope};
  Value *drawn = graph_value(draft->scope->graph, draft->name, draft->where);
  like.attributes = seed ? arena_copy(reader->arena, seed, sizeof *seed) : NULL;
  like.n_attributes = seed != NULL;
  draft_set_string(reader, &like, "dtype", dtype_name(RNNCC_F32));
  draft_set_input(reader, &like, 0, x);
  like.outputs = arena_copy(reader->arena, &drawn, sizeof(Value *));
  like.n_outputs = 1;
  onnx_commit(reader, &like);
  return drawn;
}

static Value *in_type_of(OnnxReader *reader, const Draft *draft, Value *number, Value *x) {
  return draft_node(reader, draft, "CastLike", 2, (Value *[]){number, x});
}

/* y = x / (1 - ratio) where u >= ratio, else 0. */
static void drop_elements(OnnxReader *reader, Draft *draft, const Attribute *seed) {
  Value *x = draft->inputs[0], *ratio = draft_input(draft, 1), *one = draft_number(reader, draft, RNNCC_F32, 1);
  ratio = ratio ? draft_cast(reader, draft, ratio, RNNCC_F32) : draft_number(reader, draft, RNNCC_F32, 0.5);
  Value *kept = draft_node(reader, draft, "GreaterOrEqual", 2, (Value *[]){draw_like(reader, draft, x, seed), ratio});
  Value *rest = draft_node(reader, draft, "Sub", 2, (Value *[]){one, ratio});
  Value *scale = draft_node(reader, draft, "Div", 2, (Value *[]){one, rest});
  Value *scaled = draft_node(reader, draft, "Mul", 2, (Value *[]){x, in_type_of(reader, draft, scale, x)});
  Value *zero = in_type_of(reader, draft, draft_number(reader, draft, RNNCC_F32, 0), x);
  if (draft->n_outputs > 1 && draft->outputs[1])
    draft_node_onto(reader, draft, "Identity", 1, &kept, draft->outputs[1]);
  draft->op = "Where";
  draft->n_attributes = 0;
  draft->n_inputs = 0;
  draft_set_input(reader, draft, 2, zero);
  draft_set_input(reader, draft, 1, scaled);
  draft_set_input(reader, draft, 0, kept);
  draft->n_outputs = 1;
}

bool adapt_dropout(OnnxReader *reader, Draft *draft) {
  const Attribute *given = draft_attribute(draft, "seed");
  const Attribute *seed = given ? arena_copy(reader->arena, given, sizeof *given) : NULL;
  bool trains;
  static const char *const IDLE[] = {"is_test", "ratio", "seed"};
  for (size_t i = 0; i < sizeof IDLE / sizeof *IDLE; i++) draft_drop(draft, IDLE[i]);
  if (draft->n_inputs < 1 || !draft->inputs[0]) return true; /* the check against the row tells */
  if (!read_mode(reader, draft, &trains)) return false;
  if (trains) {
    drop_elements(reader, draft, seed);
    return true;
  }
  draft->op = "Identity";
  draft->n_inputs = 1;
  if (draft->n_outputs < 2 || !draft->outputs[1]) return true;
  write_mask(reader, draft);
  draft->n_outputs = 1;
  return true;
}
