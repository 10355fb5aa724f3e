/* SPDX-License-Identifier: MIT */
/* Dropout: of older opsets the ratio is an attribute, and the mask may be of the input's type. */
#include "ir/op.h"
#include "ir/tensor.h"
#include "load/onnx/adapt.h"

/* False, and reports it, if the mode is known at run time only. */
static bool know_mode(OnnxReader *reader, const Draft *draft) {
  const Value *mode = draft_input(draft, DROPOUT_MODE);
  double number;
  if (!mode || value_number(mode, &number)) return true;
  unsupported_add(&reader->unsupported, draft->name,
                  "Dropout whose input `%.80s` is not known at compile time (--freeze makes an input a constant)",
                  mode->name);
  return false;
}

/* Nothing is dropped, and nobody reads the mask. */
static bool is_idle(const Draft *draft) {
  const Value *ratio = draft_input(draft, DROPOUT_RATIO), *mode = draft_input(draft, DROPOUT_MODE);
  double number;
  if (draft->n_outputs > 1 && draft->outputs[1]) return false;
  if (mode && value_number(mode, &number) && number == 0) return true;
  return ratio && value_number(ratio, &number) && number == 0;
}

static void become_identity(Draft *draft) {
  draft->op = "Identity";
  draft->n_inputs = draft->n_outputs = 1;
  draft->n_attributes = 0;
}

bool adapt_dropout(OnnxReader *reader, Draft *draft) {
  const Attribute *is_test = draft_attribute(draft, "is_test");
  bool tested = is_test && is_test->kind == ATTRIBUTE_INT && is_test->i;
  Value *ratio = draft_input(draft, DROPOUT_RATIO);
  draft_drop(draft, "is_test");
  if (draft->n_inputs < 1 || !draft->inputs[0]) return true; /* the check against the row tells */
  if (!know_mode(reader, draft)) return false;
  if (tested) draft_set_input(reader, draft, DROPOUT_MODE, draft_number(reader, draft, RNNCC_BOOL, 0));
  if (is_idle(draft)) {
    become_identity(draft);
    return true;
  }
  if (ratio) draft_set_input(reader, draft, DROPOUT_RATIO, draft_cast(reader, draft, ratio, RNNCC_F32));
  if (draft->scope->opset >= 10 || draft->n_outputs < 2 || !draft->outputs[1]) return true;
  DType dtype = draft_dtype(reader, draft, draft->inputs[0]);
  Value *mask = draft_take_output(draft, 1);
  draft_cast_onto(reader, draft, draft->outputs[1], dtype == RNNCC_NONE ? RNNCC_F32 : dtype, mask);
  return true;
}
