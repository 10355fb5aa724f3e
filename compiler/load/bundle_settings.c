/* SPDX-License-Identifier: MIT */
/* Settings of a bundle: each is of one network, whose name stands before it, or of all that it fits. */
#include <string.h>

#include "load/settings.h"
#include "support/closest.h"

/* "decoder:h0" of a network decoder becomes "h0". Names of models may have colons, too. */
static const char *take_network(Arena *arena, const char **name, const char *const *networks, int count) {
  const char *colon = strchr(*name, ':');
  if (!colon || !colon[1]) return NULL;
  const char *before = arena_format(arena, "%.*s", (int)(colon - *name), *name);
  for (int i = 0; i < count; i++) {
    if (strcmp(networks[i], before) != 0) continue;
    *name = colon + 1;
    return networks[i];
  }
  return NULL;
}

void settings_take_networks(ModelSettings *settings, Arena *arena, const char *const *networks, int count) {
  for (int i = 0; i < settings->count; i++)
    settings->list[i].network = take_network(arena, &settings->list[i].name, networks, count);
}

ModelSettings settings_for(const ModelSettings *settings, const char *network, ModelFiles *files) {
  ModelSettings own = *settings;
  own.network = network;
  own.files = files;
  return own;
}

/* What a setting may name. */
typedef enum Named { NAMED_DIM, NAMED_VALUE, NAMED_INPUT, NAMED_OUTPUT } Named;

/* Of all but dims. */
static Value *const *named_values(const Graph *graph, Named kind, int *count) {
  *count = kind == NAMED_VALUE ? graph->n_values : kind == NAMED_INPUT ? graph->n_inputs : graph->n_outputs;
  return kind == NAMED_VALUE ? graph->values : kind == NAMED_INPUT ? graph->inputs : graph->outputs;
}

static const char **names_of(Arena *arena, const Graph *graph, Named kind, int *count) {
  bool of_dims = kind == NAMED_DIM;
  Value *const *values = of_dims ? NULL : named_values(graph, kind, count);
  if (of_dims) *count = dim_symbol_count(graph->dims);
  const char **names = ARENA_ARRAY(arena, const char *, *count);
  for (int i = 0; i < *count; i++) names[i] = of_dims ? dim_symbol_at(graph->dims, i)->name : values[i]->name;
  return names;
}

/* `encoder has "T"; joiner has none`: the nearest first. */
static const char *names_there(Arena *arena, Graph *const *networks, int n_networks, Named kind, const char *name) {
  Text text = text_new(arena);
  for (int i = 0; i < n_networks; i++) {
    const Graph *graph = networks[i];
    int count;
    const char **names = names_of(arena, graph, kind, &count);
    text_add(&text, "%s%s has %s", i ? "; " : "", graph->name, nearest_names(arena, name, names, count));
  }
  return text.data;
}

void settings_finish_bundle(Arena *arena, const ModelSettings *settings, Graph *const *networks, int count) {
#define THERE(kind, name) names_there(arena, networks, count, NAMED_##kind, name)
  for (int i = 0; i < settings->count; i++) {
    const Setting *setting = &settings->list[i];
    const char *name = setting->name;
    if (setting->used) continue;
    switch (setting->kind) {
    case SETTING_DIM:
      error_at(LOCATION_FILE(NULL), EXIT_INVALID, "--dim: expected a named dim, found \"%.80s\"; %s", name,
               THERE(DIM, name));
      break;
    case SETTING_BOUND:
      error_at(LOCATION_FILE(NULL), EXIT_INVALID, "--bound: expected a value, found \"%.80s\"; %s", name,
               THERE(VALUE, name));
      break;
    case SETTING_STATE:
      error_at(LOCATION_FILE(NULL), EXIT_INVALID,
               "--state: expected an input and an output of one network, found \"%.80s\" and \"%.80s\"; of inputs %s; "
               "of outputs %s",
               name, setting->output, THERE(INPUT, name), THERE(OUTPUT, setting->output));
      break;
    case SETTING_FREEZE:
      error_at(LOCATION_FILE(NULL), EXIT_INVALID, "--freeze: expected an input, found \"%.80s\"; %s", name,
               THERE(INPUT, name));
      break;
    }
  }
#undef THERE
}
