/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "command.h"

enum { TEXT_COLUMN = 26, WIDTH = 100, SENTENCE_BYTES = 512 };

bool option_takes(const CommandOption *option, int verb) {
  return option->name && (verb < 0 || option->verbs >> verb & 1);
}

bool option_value_optional(const CommandOption *option) { return option->value && option->value[0] == '['; }

const char *option_text(const CommandOption *option, char text[OPTION_TEXT_BYTES]) {
  const char *value = option->value ? option->value : "";
  const char *equals = option_value_optional(option) ? "[=" : strchr(value, '=') ? " " : *value ? "=" : "";
  int length = option->letter ? snprintf(text, OPTION_TEXT_BYTES, "-%c, ", option->letter) : 0;
  snprintf(text + length, OPTION_TEXT_BYTES - (size_t)length, "--%s%s%s", option->name, equals,
           value + option_value_optional(option));
  return text;
}

/* Words from `column` on, where the first line already stands, to WIDTH. */
static void print_wrapped(FILE *out, const char *text, int column) {
  int at = column;
  while (*text) {
    int length = (int)strcspn(text, " ");
    if (at > column && at + 1 + length > WIDTH) {
      fprintf(out, "\n%*s", column, "");
      at = column;
    }
    at += fprintf(out, "%s%.*s", at > column ? " " : "", length, text);
    text += length + (text[length] == ' ');
  }
  fputc('\n', out);
}

static void print_row(FILE *out, const char *left, const char *text) {
  int length = fprintf(out, "  %s", left);
  if (length + 1 > TEXT_COLUMN) length = fprintf(out, "\n") - 1;
  fprintf(out, "%*s", TEXT_COLUMN - length, "");
  print_wrapped(out, text, TEXT_COLUMN);
}

/* brief: the first sentence alone. */
static void print_option(FILE *out, const CommandOption *option, bool brief) {
  char left[OPTION_TEXT_BYTES + 4] = "    ", sentence[SENTENCE_BYTES];
  const char *end = strstr(option->help, ". ");
  snprintf(sentence, sizeof sentence, "%.*s", brief && end ? (int)(end + 1 - option->help) : SENTENCE_BYTES - 1,
           option->help);
  option_text(option, option->letter ? left : left + 4);
  print_row(out, left, brief ? sentence : option->help);
  if (!option->example || brief) return;
  char example[WIDTH];
  snprintf(example, sizeof example, "Example: %s", option->example);
  print_row(out, "", example);
}

/* Whether `names` has the word; NULL has none. */
static bool has_word(const char *names, const char *word) {
  size_t length = strlen(word);
  for (; names && *names; names += strcspn(names, " "), names += strspn(names, " "))
    if (strcspn(names, " ") == length && !strncmp(names, word, length)) return true;
  return false;
}

/* The verb's common options, in the order of its list. */
static void print_common(FILE *out, const Command *command, int verb, const char *title, bool brief) {
  fprintf(out, "\n%s\n", title);
  for (const char *name = command->common[verb]; *name; name += strcspn(name, " "), name += strspn(name, " "))
    for (int i = 0; i < command->n_options; i++) {
      const CommandOption *option = &command->options[i];
      size_t length = strcspn(name, " ");
      bool is_it = option_takes(option, verb) && strlen(option->name) == length;
      if (is_it && !strncmp(option->name, name, length)) print_option(out, option, brief);
    }
}

/* Options that are not among `told`. Sections without one of the verb's are left out; verb -1: all. */
static void print_options(FILE *out, const Command *command, int verb, const char *told) {
  const char *section = NULL;
  for (int i = 0; i < command->n_options; i++) {
    const CommandOption *option = &command->options[i];
    if (!option->name) section = option->help;
    if (!option_takes(option, verb) || has_word(told, option->name)) continue;
    if (section) fprintf(out, "\n%s\n", section);
    section = NULL;
    print_option(out, option, false);
  }
}

static void print_usage(FILE *out, const Command *command, int verb, const char *before) {
  const CommandVerb *v = &command->verbs[verb];
  bool implied = verb == command->implied_verb;
  fprintf(out, "%s %s %s%s%s%s%s [OPTION...]\n", before, command->name, implied ? "[" : "", v->name, implied ? "]" : "",
          *v->operands ? " " : "", v->operands);
}

static void print_words(FILE *out, const Command *command, int verb) {
  for (const CommandWord *word = command->words; word < command->words + command->n_words; word++) {
    char left[OPTION_TEXT_BYTES];
    snprintf(left, sizeof left, "%s %s", command->verbs[verb].name, word->name);
    if (word->verb == verb) print_row(out, left, word->help);
  }
}

static void verb_help(FILE *out, const Command *command, int verb) {
  const CommandVerb *v = &command->verbs[verb];
  print_usage(out, command, verb, "usage:");
  fputc('\n', out);
  print_wrapped(out, v->summary, 0);
  if (v->details) print_wrapped(out, v->details, 0);
  print_words(out, command, verb);
  if (command->common[verb]) print_common(out, command, verb, "common options", false);
  print_options(out, command, verb, command->common[verb]);
  fprintf(out, "\nexample: %s\n", v->example);
}

static void print_notes(FILE *out, const char *title, const CommandNote *notes, int count) {
  fprintf(out, "\n%s\n", title);
  for (int i = 0; i < count; i++) print_row(out, notes[i].name, notes[i].help);
}

static void print_verbs(FILE *out, const Command *command) {
  print_wrapped(out, command->summary, 0);
  fputc('\n', out);
  for (int i = 0; i < command->n_verbs; i++) print_usage(out, command, i, i ? "      " : "usage:");
  fputc('\n', out);
  for (int i = 0; i < command->n_verbs; i++) {
    print_row(out, command->verbs[i].name, command->verbs[i].summary);
    print_words(out, command, i);
  }
}

static void print_examples(FILE *out, const Command *command) {
  fprintf(out, "\nexamples\n");
  for (int i = 0; i < command->n_verbs; i++) fprintf(out, "  %s\n", command->verbs[i].example);
}

/* Verbs, and what one needs of the one that may be left out. */
static void short_help(FILE *out, const Command *command) {
  char title[OPTION_TEXT_BYTES];
  print_verbs(out, command);
  snprintf(title, sizeof title, "common options of %s",
           command->implied_verb < 0 ? "" : command->verbs[command->implied_verb].name);
  if (command->implied_verb >= 0) print_common(out, command, command->implied_verb, title, true);
  print_examples(out, command);
  fprintf(out, "\n%s VERB --help lists what that verb takes; %s --help=all, everything.\n", command->name,
          command->name);
}

static void whole_help(FILE *out, const Command *command) {
  print_verbs(out, command);
  print_options(out, command, -1, NULL);
  print_notes(out, "environment", command->variables, command->n_variables);
  print_notes(out, "exit codes", command->exits, command->n_exits);
  print_examples(out, command);
}

void command_help(FILE *out, const Command *command, const CommandLine *line) {
  if (line->all)
    whole_help(out, command);
  else if (line->verb < 0)
    short_help(out, command);
  else
    verb_help(out, command, line->verb);
}
