/* SPDX-License-Identifier: MIT */
/* Networks on the command line, of `rnncc bundle`, inspect and tune: each is a file, or NAME=FILE. A file's name is the
 * network's, too. */
#include "driver/bundle.h"

#include <string.h>

#include "driver/output.h"
#include "support/identifier.h"

#define REFUSE(...) refuse(options, arena_format(options->arena, __VA_ARGS__))

/* "bundle: expected ..." */
static void refuse(const Options *options, const char *message) {
  rnncc_command.refuse(arena_format(options->arena, "%s: %s", rnncc_command.verbs[options->verb].name, message));
}

static int name_length(const char *word) {
  int length = (int)strcspn(word, "=/");
  return word[length] == '=' ? length : 0;
}

bool bundle_is_meant(Verb verb, char **words, int count) {
  bool several = count > 1 || (count == 1 && name_length(words[0]));
  return verb == VERB_BUNDLE || ((verb == VERB_INSPECT || verb == VERB_TUNE) && several);
}

/* What stands before the first `=` is a name, unless it is part of a path. */
static PlannedModel planned_model(const Options *options, const char *word) {
  int length = name_length(word);
  if (!length && *word != '=') return (PlannedModel){.network = file_identifier(options->arena, word), .path = word};
  PlannedModel model = {.network = arena_format(options->arena, "%.*s", length, word), .path = word + length + 1};
  if (!is_identifier(model.network) || !*model.path)
    REFUSE("expected a file, or NAME=FILE with an identifier of C as the name, found \"%s\"", word);
  return model;
}

static void check_pair(const Options *options, const PlannedModel *first, const PlannedModel *second) {
  if (strcmp(first->network, second->network) != 0) return;
  REFUSE("expected networks of different names, found %s twice: \"%s\" and \"%s\"; give one another name: "
         "NAME=%s",
         first->network, first->path, second->path, second->path);
}

static void check_start(const Options *options, const PlannedModel *model, const char *start) {
  const char *own = arena_format(options->arena, "%s_", model->network);
  if (strncmp(own, start, strlen(start)) != 0) return;
  REFUSE("expected no network whose name begins as constants of the header, %s, found %s; give it another name: "
         "NAME=%s",
         start, model->network, model->path);
}

/* So that a header's constants differ: those of one network begin with its name and their kind, NETWORK_INPUT_x. */
static void check_starts(const Options *options) {
  static const char *const kinds[] = {"INPUT", "OUTPUT", "STATE", "DIM"};
  const PlannedModel *models = options->models, *end = models + options->n_models;
  for (const PlannedModel *model = models; model < end; model++) {
    check_start(options, model, "NETWORK_");
    for (const PlannedModel *other = models; other < end; other++)
      for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        check_start(options, model, arena_format(options->arena, "%s_%s_", other->network, kinds[i]));
  }
}

void bundle_networks(Options *options, char **words, int count) {
  if (count == 0) REFUSE("expected networks, found none");
  const char **names = ARENA_ARRAY(options->arena, const char *, count);
  options->models = ARENA_ARRAY(options->arena, PlannedModel, count);
  for (; options->n_models < count; options->n_models++) {
    PlannedModel *model = &options->models[options->n_models];
    *model = planned_model(options, words[options->n_models]);
    names[options->n_models] = model->network;
    for (const PlannedModel *other = options->models; other < model; other++) check_pair(options, other, model);
  }
  check_starts(options);
  settings_take_networks(&options->settings, options->arena, names, count);
}

void bundle_check(const Options *options) {
  bool inspects = options->verb == VERB_INSPECT;
  if (inspects && options->memory_picture && options->n_models > 1)
    REFUSE("--memory=FILE: expected one network, found %d", options->n_models);
  if (inspects && options->html && options->n_models > 1)
    REFUSE("--html: expected one network, found %d", options->n_models);
  if (inspects) return;
  if (!options->output) REFUSE("expected -o PATH, found none");
  bool to_stdout = !strcmp(options->output, "-");
  if (to_stdout && !options->name) REFUSE("expected --name=NAME with -o -, found none");
}
