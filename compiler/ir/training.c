/* SPDX-License-Identifier: MIT */
#include "ir/training.h"

#include <fnmatch.h>
#include <string.h>

#include "support/text.h"

const char *training_parse(Arena *arena, const char *text, Training *training) {
  training->wanted = true;
  training->text = text;
  training->count = 0;
  if (!text) return NULL;
  training->list = ARENA_ARRAY(arena, TrainingRule, strlen(text) + 1);
  for (const char *at = text;; at++) {
    size_t length = strcspn(at, ",");
    bool takes = *at != '!';
    const char *pattern = arena_format(arena, "%.*s", (int)length - !takes, at + !takes);
    if (!*pattern) return "PATTERN or !PATTERN, of names of weights with * and ?, with commas between";
    training->list[training->count++] = (TrainingRule){pattern, takes};
    at += length;
    if (!*at) return NULL;
  }
}

bool training_takes(const Training *training, const char *name) {
  for (int i = training->count - 1; i >= 0; i--)
    if (fnmatch(training->list[i].pattern, name, 0) == 0) return training->list[i].takes;
  return !training->count || !training->list[0].takes;
}
