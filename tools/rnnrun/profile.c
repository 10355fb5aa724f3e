/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "session.h"
#include "support.h"
#include "tensors.h"
#include "verbs.h"

/* Flops and bytes are those at the dimensions' optimum, so the rates are right for runs of that shape. */
static void print_entry(const rnncc_profile_entry *entry, uint64_t total, int64_t runs) {
  double ns = (double)entry->nanoseconds, calls = (double)entry->calls;
  double per_ns = ns > 0 ? calls / ns : 0;
  printf("%10.2f %6.1f %9.2f %9.2f  %s  %s\n", ns * 1e-3 / (double)runs, total ? 100 * ns / (double)total : 0,
         entry->flops * per_ns, entry->bytes * per_ns, entry->kernel, entry->node);
}

static void print_table(const rnncc_profile_entry *entries, size_t count, int64_t runs) {
  uint64_t total = 0;
  for (size_t i = 0; i < count; i++) total += entries[i].nanoseconds;
  puts("  us a run      %   GFLOP/s      GB/s  kernel  node");
  for (size_t i = 0; i < count; i++) print_entry(&entries[i], total, runs);
  printf("%10.2f  100.0                      total\n", (double)total * 1e-3 / (double)runs);
}

int profile_verb(const Arguments *arguments) {
  Session session = session_load(arguments->module);
  const rnncc_info *info = session.api->info;
  rnncc_tensor *inputs = make_inputs(info, arguments, "random"), *outputs = make_outputs(info);
  session_start(&session, one_thread_count(arguments));
  session_check(&session, session.api->warmup(session.context), "warmup");
  session_run(&session, inputs, outputs);

  const rnncc_profile_entry *entries = NULL;
  size_t count = 0;
  session_check(&session, session.api->profile(session.context, 1, &entries, &count), "profile");
  for (int64_t run = 0; run < arguments->runs; run++) session_run(&session, inputs, outputs);
  session_check(&session, session.api->profile(session.context, 0, &entries, &count), "profile");
  print_table(entries, count, arguments->runs);

  free_tensors(inputs, info->n_inputs);
  free_tensors(outputs, info->n_outputs);
  session_close(&session);
  return 0;
}
