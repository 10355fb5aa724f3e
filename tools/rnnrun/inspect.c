/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "notes.h"
#include "session.h"
#include "support.h"
#include "verbs.h"

/* Names come from the model file: what is not printable there must not reach the terminal. */
static void print_name(const char *name) {
  for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
    if (*c < 0x20 || *c == 0x7f)
      printf("\\x%02x", *c);
    else
      putchar(*c);
  }
}

static void print_tensor(const char *kind, const rnncc_info *info, const rnncc_tensor_info *tensor) {
  printf("%-8s ", kind);
  print_name(tensor->name);
  printf(" %s [", dtype_text(tensor->dtype));
  for (int axis = 0; axis < tensor->rank; axis++) {
    if (axis) fputs(", ", stdout);
    if (tensor->shape[axis] >= 0)
      printf("%lld", (long long)tensor->shape[axis]);
    else if (tensor->dim[axis] >= 0)
      print_name(rnncc_dim_at(info, tensor->dim[axis])->name);
    else
      printf("<=%lld", (long long)tensor->max_shape[axis]);
  }
  putchar(']');
}

static void print_field(const char *name, const char *value) {
  printf("%-8s ", name);
  print_name(value);
  putchar('\n');
}

static void print_file_size(const char *path) {
  struct stat status;
  if (stat(path, &status) == 0) printf("%-8s %lld bytes\n", "file", (long long)status.st_size);
}

/* Has the text this line, of `length` bytes? */
static bool has_line(const char *text, const char *line, size_t length) {
  for (const char *end; (end = strchr(text, '\n')); text = end + 1)
    if ((size_t)(end - text) == length && !memcmp(text, line, length)) return true;
  return false;
}

static void print_line(const char *text, const char *end) {
  char *line = strndup(text, (size_t)(end - text));
  if (!line) fail(EXIT_RESOURCE, "out of memory");
  print_name(line);
  putchar('\n');
  free(line);
}

/* As print_name(), but line ends are those of the text; without the lines that are known. */
static void print_lines(const char *text, const Lines *known) {
  for (const char *end; (end = strchr(text, '\n')); text = end + 1)
    if (!lines_have(known, text, (size_t)(end - text))) print_line(text, end);
}

/* The lines of the description that begin so. */
static void print_lines_of(const char *text, const char *field) {
  for (const char *end; (end = strchr(text, '\n')); text = end + 1)
    if (!strncmp(text, field, strlen(field))) print_line(text, end);
}

/* Has the description this line? */
static bool tells(const char *description, const char *field, const char *value) {
  char line[256];
  int length = snprintf(line, sizeof line, "%-8s %s", field, value);
  return length > 0 && (size_t)length < sizeof line && has_line(description, line, (size_t)length);
}

/* Of a network for several targets, how the others differ from the one that is described. */
static void print_others(const Notes *notes, int described) {
  Lines known = lines_of(notes->texts[described]);
  for (int i = notes->first[described]; i >= 0; i = notes->next[i]) {
    if (!strcmp(notes->texts[i], notes->texts[described])) continue;
    putchar('\n');
    print_lines(notes->texts[i], &known);
  }
  lines_free(&known);
}

/* ---- a module that this machine cannot load ---- */

/* Of one network, or of all: their number. */
static int print_foreign_networks(const Notes *notes, const char *path, const char *network) {
  int printed = 0;
  for (int i = 0; i < notes->count; i++) {
    if (notes->first[i] != i || (network && !tells(notes->texts[i], "model", network))) continue;
    if (printed++) putchar('\n');
    print_lines(notes->texts[i], &(Lines){0});
    if (printed == 1) print_file_size(path);
    print_others(notes, i);
  }
  return printed;
}

static _Noreturn void no_foreign_network(const Notes *notes, const char *path, const char *network) {
  enum { FIELD_BYTES = sizeof "model   " };
  char names[1024] = "";
  size_t length = 0;
  for (int i = 0; i < notes->count && length < sizeof names; i++) {
    const char *text = notes->texts[i];
    if (notes->first[i] == i && strlen(text) > FIELD_BYTES)
      length += (size_t)snprintf(names + length, sizeof names - length, "%s %.*s", length ? "," : "",
                                 (int)strcspn(text + FIELD_BYTES, "\n"), text + FIELD_BYTES);
  }
  fail(EXIT_INPUT, "%s: the module has no network %s; it has%s", path, network, names);
}

/* What can be known of it. */
static int inspect_foreign(const char *path, const ElfFile *file, const Notes *notes, const char *network) {
  char machine[ELF_MACHINE_TEXT], here[ELF_MACHINE_TEXT];
  elf_machine(file, machine);
  if (!notes->count)
    fail(EXIT_ENVIRONMENT, "%s: for %s; not a module of rnncc, it has no note of rnncc", path, machine);
  printf("%-8s %s; this is %s, so the module is read, not loaded\n", "machine", machine, elf_machine_here(here));
  if (!print_foreign_networks(notes, path, network)) no_foreign_network(notes, path, network);
  return 0;
}

/* ---- a loaded module ---- */

/* Of modules that say it. */
static void print_stack(const rnncc_info *info) {
  if (!RNNCC_HAS(info, worker_stack_bytes) || !info->call_stack_bytes) return;
  printf("%-8s %zu bytes of its caller's in a run, %zu in any call", "stack", info->run_stack_bytes,
         info->call_stack_bytes);
  if (info->worker_stack_bytes) printf(", %zu of a worker's", info->worker_stack_bytes);
  putchar('\n');
}

/* description: its note, which alone tells the weights by type; or NULL. */
static void print_info(const rnncc_info *info, const char *description) {
  print_field("model", info->name);
  if (*info->model_version) print_field("version", info->model_version);
  for (int i = 0; i < info->n_dims; i++) {
    const rnncc_dim_info *dim = rnncc_dim_at(info, i);
    printf("%-8s ", "dim");
    print_name(dim->name);
    printf(" %lld to %lld, optimum %lld", (long long)dim->min, (long long)dim->max, (long long)dim->opt);
    if (dim->multiple > 1) printf(", multiples of %lld", (long long)dim->multiple);
    putchar('\n');
  }
  for (int i = 0; i < info->n_inputs; i++) print_tensor("input", info, rnncc_input_at(info, i)), putchar('\n');
  for (int i = 0; i < info->n_outputs; i++) print_tensor("output", info, rnncc_output_at(info, i)), putchar('\n');
  for (int i = 0; i < info->n_states; i++) {
    const rnncc_state_info *state = rnncc_state_at(info, i);
    print_tensor("state", info, state->tensor);
    printf(", %d slot%s\n", state->slots, state->slots == 1 ? "" : "s");
  }
  int32_t weights = RNNCC_HAS(info, n_weights) ? info->n_weights : 0;
  for (int i = 0; i < weights; i++) print_tensor("weight", info, rnncc_weight_at(info, i)), putchar('\n');
  print_field("isa", info->isa);
  print_field("target", info->target);
  printf("%-8s %zu bytes packed, sha256 %s\n", "weights", info->weights_bytes, info->weights_sha256);
  if (description) print_lines_of(description, "types    ");
  printf("%-8s %zu bytes a context\n", "memory", info->arena_bytes);
  print_stack(info);
  print_field("build", info->build);
}

/* The note of this target, and of this network, where there are several. -1: there is none. */
static int description_of(const Notes *notes, const rnncc_info *info, bool several) {
  for (int i = 0; i < notes->count; i++)
    if (tells(notes->texts[i], "target", info->target) && (!several || tells(notes->texts[i], "model", info->name)))
      return i;
  return -1;
}

static void print_network(const rnncc_api *api, const Notes *notes, const char *path) {
  int description = description_of(notes, api->info, api->n_networks > 1);
  print_info(api->info, description < 0 ? NULL : notes->texts[description]);
  if (path) print_file_size(path);
  if (description >= 0) print_others(notes, description);
}

static int inspect_loaded(const Arguments *arguments, const Notes *notes) {
  bool one = arguments->network;
  Session session = one ? load_module(arguments->module, arguments->network) : session_load(arguments->module);
  int32_t count = one ? 1 : session.api->n_networks;
  for (int32_t i = 0; i < count; i++) {
    if (i) putchar('\n');
    print_network(one ? session.api : session.api->networks[i], notes, i ? NULL : arguments->module);
  }
  session_close(&session);
  return 0;
}

int inspect_verb(const Arguments *arguments) {
  ElfFile file = elf_open(arguments->module);
  Notes notes = {0};
  if (file.bytes) notes = notes_of(&file, ELF_LINES);
  int code = elf_is_foreign(&file) ? inspect_foreign(arguments->module, &file, &notes, arguments->network)
                                   : inspect_loaded(arguments, &notes);
  notes_free(&notes);
  elf_close(&file);
  return code;
}
