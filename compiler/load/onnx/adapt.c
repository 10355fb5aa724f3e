/* SPDX-License-Identifier: MIT */
#include "load/onnx/adapt.h"

#include <limits.h>
#include <string.h>

#include "ir/op.h"

enum { ALWAYS = INT_MAX };

/* Rewritten in models of an opset before `before`; https://github.com/onnx/onnx/blob/main/docs/Changelog.md. */
static const struct {
  const char *op;
  int before;
  Adaptation *adapt;
} ADAPTATIONS[] = {
    {"Add", 7, adapt_broadcast},
    {"And", 7, adapt_broadcast},
    {"BatchNormalization", 9, adapt_batch_norm},
    {"Cast", 6, adapt_cast},
    {"Clip", 11, adapt_clip},
    {"Concat", 4, adapt_concat},
    {"ConcatFromSequence", ALWAYS, adapt_concat_from_sequence},
    {"DFT", 20, adapt_dft},
    {"Div", 7, adapt_broadcast},
    {"Dropout", ALWAYS, adapt_dropout},
    {"Equal", 7, adapt_broadcast},
    {"GRU", ALWAYS, adapt_recurrent},
    {"Gemm", 7, adapt_broadcast},
    {"Greater", 7, adapt_broadcast},
    {"GridSample", 20, adapt_grid_sample},
    {"Hardmax", 13, adapt_softmax},
    {"Identity", ALWAYS, adapt_same_sequence},
    {"LSTM", ALWAYS, adapt_recurrent},
    {"Less", 7, adapt_broadcast},
    {"LogSoftmax", 13, adapt_softmax},
    {"Loop", ALWAYS, adapt_loop},
    {"Mul", 7, adapt_broadcast},
    {"Optional", ALWAYS, adapt_optional},
    {"OptionalGetElement", ALWAYS, adapt_optional_get_element},
    {"OptionalHasElement", ALWAYS, adapt_optional_has_element},
    {"Or", 7, adapt_broadcast},
    {"PRelu", 7, adapt_prelu},
    {"Pad", 11, adapt_pad},
    {"Pow", 7, adapt_broadcast},
    {"Pow", ALWAYS, adapt_pow},
    {"RNN", ALWAYS, adapt_recurrent},
    {"Reshape", 5, adapt_reshape},
    {"Resize", 11, adapt_resize},
    {"RoiAlign", 16, adapt_roi_align},
    {"Scan", 9, adapt_scan},
    {"Scatter", ALWAYS, adapt_scatter},
    {"Selu", 6, adapt_selu},
    {"SequenceAt", ALWAYS, adapt_sequence_at},
    {"SequenceConstruct", ALWAYS, adapt_sequence_construct},
    {"SequenceEmpty", ALWAYS, adapt_sequence_empty},
    {"SequenceErase", ALWAYS, adapt_sequence_erase},
    {"SequenceInsert", ALWAYS, adapt_sequence_insert},
    {"SequenceLength", ALWAYS, adapt_sequence_length},
    {"SequenceMap", ALWAYS, adapt_sequence_map},
    {"Softmax", 13, adapt_softmax},
    {"SplitToSequence", ALWAYS, adapt_split_to_sequence},
    {"Sub", 7, adapt_broadcast},
    {"TopK", 10, adapt_top_k},
    {"Upsample", ALWAYS, adapt_upsample},
    {"Xor", 7, adapt_broadcast},
};
enum { N_ADAPTATIONS = sizeof ADAPTATIONS / sizeof *ADAPTATIONS };

bool adapt_knows(const Draft *draft) {
  for (int i = 0; i < N_ADAPTATIONS; i++)
    if (strcmp(ADAPTATIONS[i].op, draft->op) == 0) return true;
  return op_find(draft->op) != NULL;
}

bool adapt(OnnxReader *reader, Draft *draft) {
  const char *op = draft->op;
  draft_drop(draft, "consumed_inputs"); /* before opset 6: which inputs may be overwritten */
  for (int i = 0; i < N_ADAPTATIONS; i++)
    if (strcmp(ADAPTATIONS[i].op, op) == 0 && draft->scope->opset < ADAPTATIONS[i].before &&
        !ADAPTATIONS[i].adapt(reader, draft))
      return false;
  return true;
}
