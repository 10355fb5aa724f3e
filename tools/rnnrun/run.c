/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>

#include "session.h"
#include "support.h"
#include "tensors.h"
#include "verbs.h"

static void print_element(const rnncc_tensor *tensor, int64_t i) {
  if (dtype_is_float(tensor->dtype))
    printf(" %.6g", float_element(tensor, i));
  else if (dtype_is_unsigned(tensor->dtype))
    printf(" %" PRIu64, (uint64_t)integer_element(tensor, i));
  else
    printf(" %" PRId64, integer_element(tensor, i));
}

static void print_output(const char *name, const rnncc_tensor *tensor) {
  enum { SHOWN = 8 };
  char shape[SHAPE_TEXT];
  int64_t count = 1;
  for (int axis = 0; axis < tensor->rank; axis++) count *= tensor->shape[axis];
  printf("%s %s %s:", name, dtype_text(tensor->dtype), shape_text(shape, tensor->rank, tensor->shape));
  for (int64_t i = 0; i < count && i < SHOWN; i++) print_element(tensor, i);
  puts(count > SHOWN ? " ..." : "");
}

int run_verb(const Arguments *arguments) {
  Session session = load_module(arguments->module, arguments->network);
  const rnncc_info *info = session.api->info;
  check_names(&arguments->outputs, "output", info->outputs, info->tensor_size, info->n_outputs);
  rnncc_tensor *inputs = make_inputs(info, arguments, NULL), *outputs = make_outputs(info);

  session_start(&session, one_thread_count(arguments));
  set_weights(&session, arguments->weights);
  for (int64_t step = 0; step < arguments->steps; step++) session_run(&session, inputs, outputs);

  write_outputs(info, arguments, outputs);
  for (int i = 0; i < info->n_outputs; i++)
    if (!assignment_find(&arguments->outputs, rnncc_output_at(info, i)->name))
      print_output(rnncc_output_at(info, i)->name, &outputs[i]);
  free_tensors(inputs, info->n_inputs);
  free_tensors(outputs, info->n_outputs);
  session_close(&session);
  return 0;
}
