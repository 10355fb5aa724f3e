/* SPDX-License-Identifier: MIT */
/* The accuracy of a module as numbers: its outputs beside those of another one, such as the f32 module of the same
 * network. Each sample begins with fresh states, in both. */
#include "verify_reference.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "accuracy.h"
#include "samples.h"
#include "session.h"
#include "tensors.h"
#include "verbs.h"

/* Inputs or outputs: a list of a module, and how to read it. */
typedef struct List {
  const char *kind; /* "input" or "output" */
  const rnncc_info *info;
  int count;
  const rnncc_tensor_info *(*at)(const rnncc_info *info, int32_t index);
} List;

static List inputs_of(const rnncc_info *info) { return (List){"input", info, info->n_inputs, rnncc_input_at}; }
static List outputs_of(const rnncc_info *info) { return (List){"output", info, info->n_outputs, rnncc_output_at}; }

/* The place of the name; -1: it has none. */
static int find_tensor(List list, const char *name) {
  for (int i = 0; i < list.count; i++)
    if (!strcmp(list.at(list.info, i)->name, name)) return i;
  return -1;
}

/* Each tensor of `a` is one of `b`, of the same type and rank. */
static void check_tensors(const char *a_path, List a, const char *b_path, List b) {
  for (int i = 0; i < a.count; i++) {
    const rnncc_tensor_info *first = a.at(a.info, i);
    int place = find_tensor(b, first->name);
    if (place < 0) fail(EXIT_INPUT, "%s has the %s %s, %s has not", a_path, a.kind, first->name, b_path);
    const rnncc_tensor_info *second = b.at(b.info, place);
    if (first->dtype != second->dtype || first->rank != second->rank)
      fail(EXIT_INPUT, "%s %s: %s of rank %d in %s, but %s of rank %d in %s", a.kind, first->name,
           dtype_text(first->dtype), first->rank, a_path, dtype_text(second->dtype), second->rank, b_path);
  }
}

static void check_pair(const Session *session, const Session *reference) {
  const rnncc_info *info = session->api->info, *its = reference->api->info;
  check_tensors(session->path, inputs_of(info), reference->path, inputs_of(its));
  check_tensors(reference->path, inputs_of(its), session->path, inputs_of(info));
  check_tensors(session->path, outputs_of(info), reference->path, outputs_of(its));
  check_tensors(reference->path, outputs_of(its), session->path, outputs_of(info));
}

/* ---- runs ---- */

static void reset_states(const Session *session) {
  if (session->api->info->n_states)
    session_check(session, session->api->state_reset(session->context, -1), "state_reset");
}

/* The reference's inputs stand in its own order. */
static rnncc_tensor *in_order_of(const rnncc_info *to, const rnncc_info *from, const rnncc_tensor *inputs) {
  rnncc_tensor *ordered = allocate(sizeof *ordered * (size_t)to->n_inputs);
  for (int i = 0; i < to->n_inputs; i++) ordered[i] = inputs[find_tensor(inputs_of(from), rnncc_input_at(to, i)->name)];
  return ordered;
}

static void add_output(Accuracy *accuracy, const char *name, const rnncc_tensor *got, const rnncc_tensor *expected) {
  if (memcmp(got->shape, expected->shape, sizeof(int64_t) * (size_t)got->rank) != 0) {
    char g[SHAPE_TEXT], e[SHAPE_TEXT];
    fail(EXIT_MISMATCH, "output %s has the shape %s, but %s in the reference", name,
         shape_text(g, got->rank, got->shape), shape_text(e, expected->rank, expected->shape));
  }
  accuracy_add(accuracy, got, expected);
}

static void run_sample(Session *session, Session *reference, const Arguments *sample, const char *fill,
                       Accuracy *accuracies) {
  const rnncc_info *info = session->api->info, *its = reference->api->info;
  rnncc_tensor *inputs = make_inputs(info, sample, fill), *its_inputs = in_order_of(its, info, inputs);
  rnncc_tensor *outputs = make_outputs(info), *its_outputs = make_outputs(its);
  reset_states(session);
  reset_states(reference);
  for (int step = 0; step < sample->steps; step++) {
    session_run(session, inputs, outputs);
    session_run(reference, its_inputs, its_outputs);
    for (int i = 0; i < info->n_outputs; i++) {
      const char *name = rnncc_output_at(info, i)->name;
      add_output(&accuracies[i], name, &outputs[i], &its_outputs[find_tensor(outputs_of(its), name)]);
    }
  }
  free(its_inputs);
  free_tensors(inputs, info->n_inputs);
  free_tensors(outputs, info->n_outputs);
  free_tensors(its_outputs, its->n_outputs);
}

/* ---- the table ---- */

static void print_table(const rnncc_info *info, const Accuracy *accuracies) {
  int width = 6;
  for (int i = 0; i < info->n_outputs; i++)
    if ((int)strlen(rnncc_output_at(info, i)->name) > width) width = (int)strlen(rnncc_output_at(info, i)->name);
  printf("%-*s  %10s  %9s  %10s  %7s  agreement\n", width, "output", "elements", "max error", "mean error", "SNR dB");
  for (int i = 0; i < info->n_outputs; i++) {
    const Accuracy *of = &accuracies[i];
    const rnncc_tensor_info *output = rnncc_output_at(info, i);
    printf("%-*s  %10" PRId64 "  %9.3g  %10.3g  %7.2f  ", width, output->name, of->elements, of->largest,
           accuracy_mean(of), accuracy_snr(of));
    if (of->choices)
      printf("%.2f%% %s\n", 100 * (double)of->agree / (double)of->choices,
             dtype_is_float(output->dtype) ? "top-1" : "equal");
    else
      puts("-");
  }
}

/* Says what is beyond a bound. */
static int is_within(const Arguments *arguments, const char *name, const Accuracy *accuracy) {
  int within = 1;
  if (arguments->max_error >= 0 && !(accuracy->largest <= arguments->max_error)) {
    printf("%s: MISMATCH, max error %.3g is above --max-error=%g\n", name, accuracy->largest, arguments->max_error);
    within = 0;
  }
  if (arguments->min_snr >= 0 && !(accuracy_snr(accuracy) >= arguments->min_snr)) {
    printf("%s: MISMATCH, SNR %.2f dB is below --min-snr=%g\n", name, accuracy_snr(accuracy), arguments->min_snr);
    within = 0;
  }
  return within;
}

int verify_reference(const Arguments *arguments) {
  Session session = load_module(arguments->module, arguments->network);
  Session reference = load_module(arguments->reference, arguments->network);
  const rnncc_info *info = session.api->info;
  check_pair(&session, &reference);
  session.check_weights = reference.check_weights = 1;
  session_start(&session, one_thread_count(arguments));
  set_weights(&session, arguments->weights);
  session_start(&reference, one_thread_count(arguments));
  Samples samples = samples_of(arguments);
  Accuracy *accuracies = allocate(sizeof *accuracies * (size_t)info->n_outputs);
  for (int k = 0; k < samples.count; k++) {
    char fill[32];
    snprintf(fill, sizeof fill, "random:%d", k);
    run_sample(&session, &reference, &samples.arguments[k], fill, accuracies);
  }
  printf("%d sample%s, %s beside %s\n", samples.count, samples.count > 1 ? "s" : "", session.path, reference.path);
  print_table(info, accuracies);
  int same = 1;
  for (int i = 0; i < info->n_outputs; i++)
    same &= is_within(arguments, rnncc_output_at(info, i)->name, &accuracies[i]);
  free(accuracies);
  samples_free(&samples);
  session_close(&reference);
  session_close(&session);
  return same ? 0 : EXIT_MISMATCH;
}
