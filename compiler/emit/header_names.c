/* SPDX-License-Identifier: MIT */
#include "emit/header_names.h"

#include <stdbool.h>
#include <string.h>

#include "support/identifier.h"

static const char *const endings[] = {"_NAME", "_DTYPE",      "_TENSOR", "_RANK", "_MAX_BYTES", "_SLOTS",
                                      "_MIN",  "_BATCH_AXIS", "_OPT",    "_MAX",  "_MULTIPLE"};
static const char extent[] = "_EXTENT_";

static bool is_ending(const char *text) {
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
    if (!strcmp(endings[i], text)) return true;
  return !strncmp(text, extent, sizeof extent - 1);
}

/* Could a constant of `other` be called like one of `name`, which is as long or longer? */
static bool clashes(const char *name, const char *other) {
  size_t length = strlen(other);
  return !strncmp(name, other, length) && (!name[length] || is_ending(name + length));
}

/* NULL entries of `made` are not decided yet. */
static bool is_free(const char *name, const char *const *made, int count, int own) {
  for (int i = 0; i < count; i++)
    if (i != own && made[i] && (clashes(name, made[i]) || clashes(made[i], name))) return false;
  return true;
}

const char **header_names(Arena *arena, const char *const *names, int count) {
  const char **made = ARENA_ARRAY(arena, const char *, count);
  for (int i = 0; i < count; i++)
    if (is_identifier(names[i]) && is_free(names[i], made, count, i)) made[i] = names[i];
  for (int i = 0; i < count; i++) {
    const char *name = identifier_of(arena, names[i]);
    bool begins_well = *names[i] && (*names[i] < '0' || *names[i] > '9');
    if (!made[i] && begins_well && is_free(name, made, count, i)) made[i] = name;
  }
  for (int i = 0; i < count; i++)
    if (!made[i]) made[i] = arena_format(arena, "%d", i);
  return made;
}
