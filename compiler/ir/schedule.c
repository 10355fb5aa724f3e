/* SPDX-License-Identifier: MIT */
#include "ir/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "support/text.h"

enum { MAX_DIGITS = 7 }; /* of MAX_KNOB_VALUE */

static bool is_word(const char *text, size_t length, const char *word) {
  return strlen(word) == length && !strncmp(text, word, length);
}

/* ---- printing ---- */

static void print_knob(Text *text, const ScheduleKnob *knob, int value) {
  text_add(text, "%s%s=", text->length ? "," : "", knob->name);
  if (knob->words)
    text_add(text, "%s", knob->words[value]);
  else
    text_add(text, "%d", value);
}

const char *schedule_print(Arena *arena, const ScheduleKind *kind, const Knobs *knobs) {
  Text text = text_new(arena);
  if (kind->name) text_add(&text, "%s", kind->name);
  for (int i = 0; kind->knobs[i].name; i++) print_knob(&text, &kind->knobs[i], knobs->value[i]);
  return text.data;
}

/* ---- parsing ---- */

/* NULL: the first word of the text is none of theirs. */
static const ScheduleKind *kind_of(const ScheduleKind *const *kinds, const char *text) {
  for (; *kinds; kinds++)
    if (!(*kinds)->name || is_word(text, strcspn(text, ","), (*kinds)->name)) return *kinds;
  return NULL;
}

/* -1: it is none of the knob's. */
static int value_of(const ScheduleKnob *knob, const char *text, size_t length) {
  for (int i = 0; knob->words && i <= knob->max; i++)
    if (is_word(text, length, knob->words[i])) return i;
  if (knob->words || length == 0 || length > MAX_DIGITS || strspn(text, "0123456789") < length) return -1;
  int value = (int)strtol(text, NULL, 10);
  return value >= knob->min && value <= knob->max ? value : -1;
}

/* "oc=2". False if it is no knob's, or one's that was named before. */
static bool parse_knob(const char *part, size_t length, ParsedSchedule *parsed) {
  size_t name = strcspn(part, "=");
  if (name >= length) return false;
  for (int i = 0; parsed->kind->knobs[i].name; i++) {
    const ScheduleKnob *knob = &parsed->kind->knobs[i];
    if (!is_word(part, name, knob->name)) continue;
    int value = value_of(knob, part + name + 1, length - name - 1);
    if (value < 0 || parsed->named[i]) return false;
    parsed->named[i] = true;
    parsed->knobs.value[i] = value;
    return true;
  }
  return false;
}

const char *schedule_parse(const ScheduleKind *const *kinds, const char *text, ParsedSchedule *parsed) {
  *parsed = (ParsedSchedule){.kind = kind_of(kinds, text)};
  if (!parsed->kind) return text;
  const char *part = text;
  if (parsed->kind->name) {
    part += strlen(parsed->kind->name);
    if (!*part) return NULL;
    part++; /* the comma */
  }
  for (;; part++) {
    size_t length = strcspn(part, ",");
    if (!parse_knob(part, length, parsed)) return part;
    part += length;
    if (!*part) return NULL;
  }
}

bool schedule_is_whole(const ParsedSchedule *parsed) {
  for (int i = 0; parsed->kind->knobs[i].name; i++)
    if (!parsed->named[i]) return false;
  return true;
}

void schedule_set_named(const ParsedSchedule *parsed, Knobs *knobs) {
  for (int i = 0; i < MAX_SCHEDULE_KNOBS; i++)
    if (parsed->named[i]) knobs->value[i] = parsed->knobs.value[i];
}
