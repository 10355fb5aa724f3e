/* SPDX-License-Identifier: MIT */
/* Completion for zsh: the specifications that _arguments reads, a case a verb. */
#include <string.h>

#include "pages.h"

/* A sentence inside single quotes and brackets; _arguments reads colons and brackets itself. */
static void write_description(FILE *out, const char *text) {
  const char *end = strstr(text, ". ");
  size_t length = end ? (size_t)(end - text) : strlen(text);
  if (length && text[length - 1] == '.') length--;
  for (size_t i = 0; i < length; i++) {
    if (strchr("[]:\\", text[i])) fputc('\\', out);
    fputs(text[i] == '\'' ? "'\\''" : (const char[]){text[i], '\0'}, out);
  }
}

/* :KIND:(so c h) or :PATH:_files, or both. */
static void write_value(FILE *out, const CommandOption *option) {
  if (!option->value) return;
  fputs(option_value_optional(option) ? "::" : ":", out);
  write_description(out, option->value + option_value_optional(option));
  fputc(':', out);
  bool files = option_offers(option, "FILE");
  if (files && strcmp(option->words, "FILE") != 0) {
    fputs("{compadd -- ", out);
    write_words(out, option);
    fputs("; _files}", out);
  } else if (files) {
    fputs("_files", out);
  } else if (option->words) {
    fputc('(', out);
    write_words(out, option);
    fputc(')', out);
  } else {
    fputc(' ', out);
  }
}

static void write_option(FILE *out, const CommandOption *option) {
  const char *equals = option_value_optional(option) ? "=-" : option->value ? "=" : "";
  if (option->letter)
    fprintf(out, "      '(-%c --%s)'{-%c%s,--%s%s}'[", option->letter, option->name, option->letter,
            option->value && !option_value_optional(option) ? "+" : "", option->name, equals);
  else
    fprintf(out, "      '--%s%s[", option->name, equals);
  write_description(out, option->help);
  fputc(']', out);
  write_value(out, option);
  fputs("' \\\n", out);
}

static void write_operands(FILE *out, const Command *command, int verb) {
  bool has_words = false;
  for (int i = 0; i < command->n_words; i++) {
    if (command->words[i].verb != verb) continue;
    fprintf(out, "%s%s", has_words ? " " : "      '1:verb:(", command->words[i].name);
    has_words = true;
  }
  if (has_words) fputs(")' \\\n", out);
  fputs("      '*:file:_files' ;;\n", out);
}

static void write_verb(FILE *out, const Command *command, int verb) {
  fprintf(out, "  %s)\n    _arguments -s \\\n", command->verbs[verb].name);
  for (int i = 0; i < command->n_options; i++)
    if (option_takes(&command->options[i], verb)) write_option(out, &command->options[i]);
  write_operands(out, command, verb);
}

void write_zsh(FILE *out, const Command *command) {
  const char *implied = command->implied_verb < 0 ? "" : command->verbs[command->implied_verb].name;
  fprintf(out,
          "#compdef %s\n"
          "# Completion of %s for zsh, made from its table of options.\n"
          "local verb=%s\n"
          "local -a verbs=(\n",
          command->name, command->name, implied);
  for (int i = 0; i < command->n_verbs; i++) {
    fprintf(out, "  '%s:", command->verbs[i].name);
    write_description(out, command->verbs[i].summary);
    fputs("'\n", out);
  }
  fputs(")\n"
        "if ((CURRENT == 2)) && [[ $words[2] != -* ]]; then\n"
        "  _describe verb verbs\n"
        "  _files\n"
        "  return\n"
        "fi\n"
        "if ((${verbs[(I)$words[2]:*]})); then\n"
        "  verb=$words[2]\n"
        "  shift words\n"
        "  ((CURRENT--))\n"
        "fi\n"
        "case $verb in\n",
        out);
  for (int verb = 0; verb < command->n_verbs; verb++) write_verb(out, command, verb);
  fputs("esac\n", out);
}
