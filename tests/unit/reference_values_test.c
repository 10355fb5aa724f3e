/* SPDX-License-Identifier: MIT */
/*
 * Reference kernels with extreme values: integers stay exact and wrap around, undefined values are reported or defined,
 * and no value makes a kernel read or write outside its tensors (the sanitizers' build checks that).
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/tensor.h"
#include "ir_build.h"
#include "shapes/shape.h"

enum { MAX_INPUTS = 8 };

/* A node with tensors at its inferred shapes. */
typedef struct Fixture {
  Arena *arena;
  Node *node;
  Tensor *inputs[MAX_INPUTS], *outputs[3];
} Fixture;

static Tensor *tensor_like(Arena *arena, const Value *value) {
  int64_t shape[MAX_RANK];
  if (!value) return NULL;
  for (int axis = 0; axis < value->rank; axis++) shape[axis] = dim_value(value->shape[axis]);
  Tensor *tensor = tensor_new(arena, value->dtype, value->rank, shape);
  tensor->data = calloc((size_t)tensor_count(tensor),
                        dtype_size(value->dtype)); /* allocated alone, so that sanitizers see its ends */
  if (value->data) memcpy(tensor->data, value->data, (size_t)tensor_count(tensor) * dtype_size(value->dtype));
  return tensor;
}

static Fixture fixture(const char *op, const char *inputs, const char *attributes, int n_outputs) {
  Fixture made = {.arena = arena_new()};
  Graph *graph = build_graph(made.arena);
  made.node = build_node(graph, op, inputs, attributes, n_outputs);
  if (!infer_node(graph, made.node)) fail_msg("%s %s %s has no shape", op, inputs, attributes);
  for (int k = 0; k < made.node->n_inputs; k++) made.inputs[k] = tensor_like(made.arena, made.node->inputs[k]);
  for (int k = 0; k < made.node->n_outputs; k++) made.outputs[k] = tensor_like(made.arena, made.node->outputs[k]);
  return made;
}

static void tear_down(Fixture *it) {
  for (int k = 0; k < it->node->n_inputs; k++)
    if (it->inputs[k]) free(it->inputs[k]->data);
  for (int k = 0; k < it->node->n_outputs; k++)
    if (it->outputs[k]) free(it->outputs[k]->data);
  arena_free(it->arena);
}

static void set_ints(Tensor *tensor, const int64_t *values) {
  for (int64_t i = 0; i < tensor_count(tensor); i++) tensor_set_int(tensor, i, values[i]);
}

static const char *run(Fixture *it) {
  return it->node->op->reference(it->node, (const Tensor *const *)it->inputs, it->outputs);
}

#define INTS(...) ((const int64_t[]){__VA_ARGS__})

/* The op on two i64 operands of one element each. */
static int64_t binary(const char *op, const char *attributes, int64_t a, int64_t b) {
  Fixture it = fixture(op, "i64[1] i64[1]", attributes, 1);
  set_ints(it.inputs[0], &a);
  set_ints(it.inputs[1], &b);
  assert_null(run(&it));
  int64_t result = tensor_get_int(it.outputs[0], 0);
  tear_down(&it);
  return result;
}

static void assert_told(const char *op, const char *inputs, const char *attributes, const int64_t *values, int input) {
  Fixture it = fixture(op, inputs, attributes, 1);
  set_ints(it.inputs[input], values);
  if (!run(&it)) fail_msg("%s %s says nothing of a value out of range", op, inputs);
  tear_down(&it);
}

static void integers_past_double_stay_exact(void **state) {
  (void)state;
  const int64_t odd = (INT64_C(1) << 53) + 1;
  assert_int_equal(binary("Add", "", odd, 2), odd + 2);
  assert_int_equal(binary("Sub", "", odd, 2), odd - 2);
  assert_int_equal(binary("Mul", "", odd, 3), odd * 3);
  assert_int_equal(binary("Div", "", odd * 3, 3), odd);
  assert_int_equal(binary("Max", "", odd, odd - 1), odd);
  assert_int_equal(binary("Equal", "", odd, odd - 1), 0);
  assert_int_equal(binary("MatMul", "", odd, 3), odd * 3);

  Fixture sum = fixture("ReduceSum", "i64[3] i64=0", "keepdims=0", 1);
  set_ints(sum.inputs[0], INTS(odd, 1, -odd));
  assert_null(run(&sum));
  assert_int_equal(tensor_get_int(sum.outputs[0], 0), 1);
  tear_down(&sum);
}

static void integers_wrap_around(void **state) {
  (void)state;
  assert_int_equal(binary("Add", "", INT64_MAX, 1), INT64_MIN);
  assert_int_equal(binary("Mul", "", INT64_MIN, -1), INT64_MIN);
  assert_int_equal(binary("Div", "", INT64_MIN, -1), INT64_MIN);
  assert_int_equal(binary("Mod", "", INT64_MIN, -1), 0);
  assert_int_equal(binary("Mod", "fmod=1", INT64_MIN, -1), 0);
  assert_int_equal(binary("Pow", "", 2, 64), 0);

  Fixture it = fixture("Add", "u8[2] u8[2]", "", 1);
  set_ints(it.inputs[0], INTS(255, 200));
  set_ints(it.inputs[1], INTS(1, 100));
  assert_null(run(&it));
  assert_int_equal(tensor_get_int(it.outputs[0], 0), 0);
  assert_int_equal(tensor_get_int(it.outputs[0], 1), 44);
  tear_down(&it);
}

static void remainders_follow_the_divisor_or_the_dividend(void **state) {
  (void)state;
  assert_int_equal(binary("Mod", "", -7, 3), 2);
  assert_int_equal(binary("Mod", "", 7, -3), -2);
  assert_int_equal(binary("Mod", "fmod=1", -7, 3), -1);
  assert_int_equal(binary("Mod", "fmod=1", 7, -3), 1);
}

static void values_out_of_range_are_reported(void **state) {
  (void)state;
  assert_told("Div", "i64[2] i64[2]", "", INTS(1, 0), 1);
  assert_told("Div", "i32[2] i32[2]", "", INTS(0, 1), 1);
  assert_told("Mod", "u8[2] u8[2]", "", INTS(1, 0), 1);
  assert_told("Gather", "f32[3,2] i64[2]", "", INTS(0, 3), 1);
  assert_told("Gather", "f32[3,2] i64[2]", "", INTS(-4, 0), 1);
  assert_told("Gather", "f32[3,2] i64[2]", "", INTS(INT64_MIN, 0), 1);
  assert_told("RNN", "f32[3,2,4] f32[1,5,4] f32[1,5,5] _ i32[2]", "hidden_size=5", INTS(3, 4), 4);
  assert_told("LSTM", "f32[3,2,4] f32[1,20,4] f32[1,20,5] _ i32[2]", "hidden_size=5", INTS(3, -1), 4);
}

static int64_t cast_to(const char *attributes, float value) {
  Fixture it = fixture("Cast", "f32[1]", attributes, 1);
  tensor_set(it.inputs[0], 0, (double)value);
  assert_null(run(&it));
  int64_t result = tensor_get_int(it.outputs[0], 0);
  tear_down(&it);
  return result;
}

static void casts_out_of_range_are_defined(void **state) {
  (void)state;
  assert_int_equal(cast_to("to=i32", -2.75F), -2);
  assert_int_equal(cast_to("to=i32", 0x1p31F), INT32_MIN);
  assert_int_equal(cast_to("to=i32", -0x1p31F), INT32_MIN);
  assert_int_equal(cast_to("to=i32", NAN), INT32_MIN);
  assert_int_equal(cast_to("to=i64", -0x1p63F), INT64_MIN);
  assert_int_equal(cast_to("to=i64", INFINITY), INT64_MIN);
  assert_int_equal(cast_to("to=u8", 300.0F), 44);
  assert_int_equal(cast_to("to=u8", -1.0F), 255);
  assert_int_equal(cast_to("to=bool", NAN), 1);
}

static void an_i64_becomes_f32_in_one_rounding(void **state) {
  (void)state;
  /* Via double, 2^24 + 1 and a bit would first lose the bit, then go to even. */
  const int64_t above_half = (INT64_C(1) << 60) + (INT64_C(1) << 36) + 1;
  Fixture it = fixture("Cast", "i64[1]", "to=f32", 1);
  set_ints(it.inputs[0], &above_half);
  assert_null(run(&it));
  assert_true(*(float *)it.outputs[0]->data == 0x1.000002p60F);
  tear_down(&it);
}

/* Ops whose integer inputs say where to read. */
static const struct {
  const char *op, *inputs, *attributes;
  int n_outputs;
} GUIDED[] = {
    {"Slice", "f32[4,5] i64=1,0 i64=3,5 i64=0,1 i64=1,2", "", 1},
    {"Slice", "i64[7] i64=6 i64=0 i64=0 i64=-2", "", 1},
    {"Split", "f32[2,6] i64=2,3,1", "axis=1", 3},
    {"Pad", "f32[3,4] i64=1,0,0,2", "", 1},
    {"Pad", "f32[3,4] i64=1,1 _ i64=1", "mode=edge", 1},
    {"Pad", "u8[5] i64=2,2", "mode=reflect", 1},
    {"Pad", "i32[5] i64=2,2", "mode=wrap", 1},
    {"Expand", "f32[1,3] i64=2,3", "", 1},
    {"Reshape", "f32[2,6] i64=3,4", "", 1},
    {"Gather", "f32[3,4] i64[2,2]", "axis=1", 1},
    {"ReduceSum", "f32[3,4] i64=1", "", 1},
    {"ReduceMean", "i64[3,4] i64=0", "", 1},
    {"RNN", "f32[3,2,4] f32[1,5,4] f32[1,5,5] _ i32[2]", "hidden_size=5", 2},
    {"GRU", "f32[3,2,4] f32[2,15,4] f32[2,15,5] _ i64[2]", "hidden_size=5 direction=bidirectional", 2},
};
enum { N_GUIDED = sizeof GUIDED / sizeof *GUIDED, ROUNDS = 400 };

static const int64_t EDGES[] = {0, 1,  -1,  2,    -2,        3,         -3,        5,
                                7, -7, 100, -100, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
enum { N_EDGES = sizeof EDGES / sizeof *EDGES };

static uint32_t next_random(uint32_t *seed) { return *seed = *seed * 1664525U + 1013904223U, *seed >> 8; }

static void no_value_of_an_integer_input_leads_outside(void **state) {
  (void)state;
  uint32_t seed = 1;
  for (int row = 0; row < N_GUIDED; row++) {
    Fixture it = fixture(GUIDED[row].op, GUIDED[row].inputs, GUIDED[row].attributes, GUIDED[row].n_outputs);
    int refused = 0;
    for (int round = 0; round < ROUNDS; round++) {
      for (int k = 0; k < it.node->n_inputs; k++) {
        bool guides = k > 0 && it.inputs[k] && it.inputs[k]->dtype != RNNCC_F32;
        for (int64_t i = 0; guides && i < tensor_count(it.inputs[k]); i++)
          tensor_set_int(it.inputs[k], i, EDGES[next_random(&seed) % N_EDGES]);
      }
      refused += run(&it) != NULL;
    }
    bool ignores =
        !strcmp(GUIDED[row].op, "Expand") || !strcmp(GUIDED[row].op, "Reshape"); /* the output's shape shows it */
    if (!ignores && refused < ROUNDS / 2) fail_msg("%s takes %d of %d", GUIDED[row].op, ROUNDS - refused, ROUNDS);
    tear_down(&it);
  }
}

static void a_double_beyond_an_integer_type_is_its_end(void **state) {
  (void)state;
  Arena *arena = arena_new();
  static const double values[] = {1e30, -1e30, INFINITY, -INFINITY, NAN, -7.9};
  static const int64_t expected[] = {INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, 0, -7};
  Tensor *integer = tensor_new(arena, RNNCC_I64, 0, NULL), *real = tensor_new(arena, RNNCC_F64, 0, NULL);
  Tensor *natural = tensor_new(arena, RNNCC_U64, 0, NULL);
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    tensor_set(integer, 0, values[i]);
    assert_int_equal(tensor_get_int(integer, 0), expected[i]);
    tensor_set(real, 0, values[i]);
    assert_int_equal(tensor_get_int(real, 0), expected[i]);
  }
  tensor_set(natural, 0, 1e30);
  assert_true((uint64_t)tensor_get_int(natural, 0) == UINT64_MAX);
  arena_free(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(integers_past_double_stay_exact),
      cmocka_unit_test(integers_wrap_around),
      cmocka_unit_test(remainders_follow_the_divisor_or_the_dividend),
      cmocka_unit_test(values_out_of_range_are_reported),
      cmocka_unit_test(casts_out_of_range_are_defined),
      cmocka_unit_test(a_double_beyond_an_integer_type_is_its_end),
      cmocka_unit_test(an_i64_becomes_f32_in_one_rounding),
      cmocka_unit_test(no_value_of_an_integer_input_leads_outside),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
