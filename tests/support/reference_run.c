/* SPDX-License-Identifier: MIT */
/*
 * Runs models by the reference interpreter, for tests (tests/support/reference.py drives it):
 *
 *     reference_run [--simplified] [--freeze INPUT=VALUE]... MODEL FOLDER [DIM=VALUE]...
 *     reference_run
 *
 * FOLDER/in<k> holds the elements of the k-th input: the graph's inputs, then the states'. FOLDER/out<k> is written:
 * the graph's outputs, then the states' new values. For each, a line `dtype extent extent...` goes to stdout.
 * A state that rnncc adds, the number of random draws so far, is 0 and not counted.
 * --freeze makes an input a constant, as rnncc's option does; it has no file, and is not counted.
 * --simplified runs the passes that rewrite the graph first: they must not change what it computes.
 * Exit 1, with the reason on stderr, if the reference finds a value out of range.
 *
 * Without arguments, stdin holds those of any number of runs: each argument ends with a zero byte, each run with an
 * empty argument. A run is a fork, as loading libclang takes longer than most runs. What it says goes to FOLDER/stdout
 * and FOLDER/stderr, its exit status, or the negative of the signal that ended it, to stdout, a line for each run.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/load_model.h"
#include "machine/machine.h"
#include "reference/reference.h"
#include "simplify.h"
#include "support/files.h"

typedef struct Command {
  Arena *arena;
  Graph *graph;
  int n_states; /* of the model */
  bool simplified;
  ModelSettings settings;
  const char *model, *folder;
  int64_t *symbols;
} Command;

static const Location COMMAND_LINE = {.byte = -1};

/* DIM=VALUE; dims that are not given have their optimum. */
static void read_symbols(Command *command, int argc, char **argv) {
  DimTable *dims = command->graph->dims;
  command->symbols = ARENA_ARRAY(command->arena, int64_t, dim_symbol_count(dims));
  for (int i = 0; i < dim_symbol_count(dims); i++) command->symbols[i] = dim_symbol_at(dims, i)->opt;
  for (int i = 0; i < argc; i++) {
    char *name = arena_string(command->arena, argv[i]), *equals = strchr(name, '=');
    if (equals) *equals = 0;
    const DimSymbol *symbol = dim_symbol_find(dims, name);
    if (!equals || !symbol) fatal_at(COMMAND_LINE, EXIT_INVALID, "expected DIM=VALUE, found %s", argv[i]);
    command->symbols[symbol->index] = strtoll(equals + 1, NULL, 10);
  }
}

static FILE *open_tensor(const Command *command, const char *kind, int index, const char *mode) {
  const char *path = arena_format(command->arena, "%s/%s%d", command->folder, kind, index);
  FILE *file = fopen(path, mode);
  if (!file) fatal_at(LOCATION_FILE(path), EXIT_ENVIRONMENT, "cannot be opened");
  return file;
}

static const Tensor *read_input(const Command *command, int index, const Value *value) {
  int64_t shape[MAX_RANK];
  for (int axis = 0; axis < value->rank; axis++) shape[axis] = dim_eval(value->shape[axis], command->symbols);
  Tensor *tensor = tensor_new(command->arena, value->dtype, value->rank, shape);
  size_t count = (size_t)tensor_count(tensor);
  FILE *file = open_tensor(command, "in", index, "rb");
  if (fread(tensor->data, dtype_size(value->dtype), count, file) != count || fgetc(file) != EOF)
    fatal_at(COMMAND_LINE, EXIT_INVALID, "in%d does not hold %zu elements", index, count);
  fclose(file);
  return tensor;
}

static void write_output(const Command *command, int index, const Tensor *tensor) {
  FILE *file = open_tensor(command, "out", index, "wb");
  fwrite(tensor->data, dtype_size(tensor->dtype), (size_t)tensor_count(tensor), file);
  fclose(file);
  printf("%s", dtype_name(tensor->dtype));
  for (int axis = 0; axis < tensor->rank; axis++) printf(" %" PRId64, tensor->shape[axis]);
  printf("\n");
}

static void run(Command *command) {
  Graph *graph = command->graph;
  int n_inputs = graph->n_inputs + graph->n_states, n_outputs = graph->n_outputs + graph->n_states;
  int n_added = graph->n_states - command->n_states;
  const Tensor **inputs = ARENA_ARRAY(command->arena, const Tensor *, n_inputs);
  Tensor **outputs = ARENA_ARRAY(command->arena, Tensor *, n_outputs);
  for (int k = 0; k < n_inputs; k++) {
    const Value *value = k < graph->n_inputs ? graph->inputs[k] : graph->states[k - graph->n_inputs].input;
    bool added = k >= n_inputs - n_added;
    inputs[k] = added ? tensor_new(command->arena, value->dtype, value->rank, NULL) : read_input(command, k, value);
  }
  const char *wrong = reference_run(command->arena, graph, inputs, outputs, command->symbols);
  if (wrong) fatal_at(COMMAND_LINE, EXIT_MISMATCH, "%s", wrong);
  for (int k = 0; k < n_outputs - n_added; k++) write_output(command, k, outputs[k]);
}

/* Of the arguments up to FOLDER. Returns how many they are. */
static int read_command(Command *command, int argc, char **argv) {
  int used = 0;
  command->settings = settings_new(command->arena, argc);
  command->simplified = used < argc && !strcmp(argv[used], "--simplified");
  used += command->simplified;
  for (; used + 1 < argc && !strcmp(argv[used], "--freeze"); used += 2)
    if (!settings_add_freeze(&command->settings, command->arena, argv[used + 1]))
      fatal_at(COMMAND_LINE, EXIT_INVALID, "expected INPUT=VALUE, found %s", argv[used + 1]);
  if (used + 2 > argc) fatal_at(COMMAND_LINE, EXIT_INVALID, "expected MODEL and FOLDER");
  command->model = argv[used];
  command->folder = argv[used + 1];
  return used + 2;
}

static int run_one(int argc, char **argv) {
  const Target *target = target_find("native");
  const Machine machine = machine_of(target, false, 1);
  Command command = {.arena = arena_new()};
  int used = read_command(&command, argc, argv);
  command.graph = load_model(command.arena, command.model, &command.settings);
  command.graph->config = &(Config){.target = target, .machine = &machine};
  command.n_states = command.graph->n_states;
  verify(command.graph);
  number_draws(command.graph);
  infer_shapes(command.graph);
  legalize_types(command.graph);
  decompose(command.graph);
  if (command.simplified) {
    simplify(command.graph);
    reroll_rnn(command.graph);
    fuse_epilogue(command.graph);
  }
  read_symbols(&command, argc - used, argv + used);
  run(&command);
  arena_free(command.arena);
  return 0;
}

/* ---- many runs ---- */

enum { MAX_ARGUMENTS = 64 };

/* The arguments of one run; 0 at the end of stdin. */
static int read_arguments(char *arguments[MAX_ARGUMENTS]) {
  for (int count = 0; count < MAX_ARGUMENTS; count++) {
    size_t capacity = 0;
    arguments[count] = NULL;
    if (getdelim(&arguments[count], &capacity, 0, stdin) < 0) return 0;
    if (!*arguments[count]) return count;
  }
  fatal_at(COMMAND_LINE, EXIT_INVALID, "expected at most %d arguments", MAX_ARGUMENTS - 1);
}

static void redirect(const char *folder, const char *name, FILE *stream) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  if (!freopen(path, "w", stream)) fatal_at(LOCATION_FILE(path), EXIT_ENVIRONMENT, "cannot be written");
}

static int run_forked(int argc, char **argv) {
  pid_t child = fork();
  if (child < 0) fatal_at(COMMAND_LINE, EXIT_ENVIRONMENT, "cannot fork");
  if (child == 0) {
    Command command = {.arena = arena_new()};
    read_command(&command, argc, argv);
    redirect(command.folder, "stdout", stdout);
    redirect(command.folder, "stderr", stderr);
    exit(run_one(argc, argv));
  }
  int status;
  while (waitpid(child, &status, 0) < 0) continue;
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static int run_many(void) {
  char *arguments[MAX_ARGUMENTS];
  for (int count; (count = read_arguments(arguments)) > 0;) {
    printf("%d\n", run_forked(count, arguments));
    fflush(stdout);
    for (int i = 0; i <= count; i++) free(arguments[i]);
  }
  return 0;
}

int main(int argc, char **argv) { return argc > 1 ? run_one(argc - 1, argv + 1) : run_many(); }
