/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "command.h"

enum { TEXT_COLUMN = 26, WIDTH = 100 };

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

static void print_option(FILE *out, const CommandOption *option) {
  char left[OPTION_TEXT_BYTES + 4] = "    ";
  option_text(option, option->letter ? left : left + 4);
  print_row(out, left, option->help);
  if (!option->example) return;
  char example[WIDTH];
  snprintf(example, sizeof example, "Example: %s", option->example);
  print_row(out, "", example);
}

/* Sections without an option of the verb are left out. */
static void print_options(FILE *out, const Command *command, int verb) {
  const char *section = NULL;
  for (int i = 0; i < command->n_options; i++) {
    const CommandOption *option = &command->options[i];
    if (!option->name) section = option->help;
    if (!option_takes(option, verb)) continue;
    if (section) fprintf(out, "\n%s\n", section);
    section = NULL;
    print_option(out, option);
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
  print_options(out, command, verb);
  fprintf(out, "\nexample: %s\n", v->example);
}

static void print_notes(FILE *out, const char *title, const CommandNote *notes, int count) {
  fprintf(out, "\n%s\n", title);
  for (int i = 0; i < count; i++) print_row(out, notes[i].name, notes[i].help);
}

static void whole_help(FILE *out, const Command *command) {
  print_wrapped(out, command->summary, 0);
  fputc('\n', out);
  for (int i = 0; i < command->n_verbs; i++) print_usage(out, command, i, i ? "      " : "usage:");
  fputc('\n', out);
  for (int i = 0; i < command->n_verbs; i++) {
    print_row(out, command->verbs[i].name, command->verbs[i].summary);
    print_words(out, command, i);
  }
  print_options(out, command, -1);
  print_notes(out, "environment", command->variables, command->n_variables);
  print_notes(out, "exit codes", command->exits, command->n_exits);
  fprintf(out, "\n%s VERB --help lists what one verb takes. Examples:\n", command->name);
  for (int i = 0; i < command->n_verbs; i++) fprintf(out, "  %s\n", command->verbs[i].example);
}

void command_help(FILE *out, const Command *command, int verb) {
  if (verb < 0)
    whole_help(out, command);
  else
    verb_help(out, command, verb);
}
