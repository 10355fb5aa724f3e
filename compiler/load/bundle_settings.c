/* SPDX-License-Identifier: MIT */
/* Settings of a bundle: each is of one network, whose name stands before it, or of all that it fits. */
#include <string.h>

#include "load/settings.h"

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
  for (int i = 0; i < settings->n_dims; i++)
    settings->dims[i].network = take_network(arena, &settings->dims[i].name, networks, count);
  for (int i = 0; i < settings->n_states; i++)
    settings->states[i].network = take_network(arena, &settings->states[i].input, networks, count);
  for (int i = 0; i < settings->n_freezes; i++)
    settings->freezes[i].network = take_network(arena, &settings->freezes[i].name, networks, count);
}

ModelSettings settings_for(const ModelSettings *settings, const char *network, ModelFiles *files) {
  ModelSettings own = *settings;
  own.network = network;
  own.files = files;
  return own;
}

static void tell_unused(const char *option, const char *what, const char *name, const char *networks) {
  error_at(LOCATION_FILE(NULL), EXIT_INVALID, "%s: expected %s of %s, found \"%.80s\"", option, what, networks, name);
}

void settings_finish_bundle(const ModelSettings *settings, const char *networks) {
  for (int i = 0; i < settings->n_dims; i++)
    if (!settings->dims[i].used) tell_unused("--dim", "a named dim", settings->dims[i].name, networks);
  for (int i = 0; i < settings->n_states; i++)
    if (!settings->states[i].used)
      error_at(LOCATION_FILE(NULL), EXIT_INVALID,
               "--state: expected an input and an output of one of %s, found \"%.80s\" and \"%.80s\"", networks,
               settings->states[i].input, settings->states[i].output);
  for (int i = 0; i < settings->n_freezes; i++)
    if (!settings->freezes[i].used) tell_unused("--freeze", "an input", settings->freezes[i].name, networks);
}
