/* SPDX-License-Identifier: MIT */
/* A manual page in the macros of man(7). */
#include <ctype.h>
#include <string.h>

#include "pages.h"

/* Hyphens are minus signs; what stands in backquotes is bold. A line never begins with a control character: all text
 * follows a word of ours or goes through \&. */
static void write_text(FILE *out, const char *text) {
  bool bold = false;
  fputs("\\&", out);
  for (; *text; text++) {
    if (*text == '`') {
      bold = !bold;
      fputs(bold ? "\\fB" : "\\fR", out);
    } else if (*text == '-') {
      fputs("\\-", out);
    } else if (*text == '\\') {
      fputs("\\e", out);
    } else {
      fputc(*text, out);
    }
  }
}

static void write_line(FILE *out, const char *text) {
  write_text(out, text);
  fputc('\n', out);
}

static void write_bold_line(FILE *out, const char *text) {
  fputs("\\fB", out);
  write_text(out, text);
  fputs("\\fR\n", out);
}

static void write_tagged(FILE *out, const char *tag, const char *text) {
  fputs(".TP\n", out);
  write_bold_line(out, tag);
  write_line(out, text);
}

/* "-o, --output=PATH", the program's part bold, the user's in italics. */
static void write_option_tag(FILE *out, const CommandOption *option) {
  char text[OPTION_TEXT_BYTES];
  option_text(option, text);
  size_t value = option->value ? strlen(option->value) - option_value_optional(option) : 0;
  fputs(".TP\n\\fB", out);
  for (const char *c = text; *c; c++) {
    if (value && strlen(c) == value) fputs("\\fI", out);
    fprintf(out, *c == '-' ? "\\-" : "%c", *c);
  }
  fputs("\\fR\n", out);
}

static void write_options(FILE *out, const Command *command) {
  char verbs[VERBS_BYTES];
  fputs(".SH OPTIONS\n", out);
  for (int i = 0; i < command->n_options; i++) {
    const CommandOption *option = &command->options[i];
    if (!option->name) {
      fprintf(out, ".SS %c%s\n", toupper((unsigned char)*option->help), option->help + 1);
      continue;
    }
    write_option_tag(out, option);
    write_line(out, option->help);
    fprintf(out, "(%s)\n", verbs_text(command, option, verbs));
    if (!option->example) continue;
    fputs(".br\nExample: ", out);
    write_bold_line(out, option->example);
  }
}

static void write_synopsis(FILE *out, const Command *command) {
  fputs(".SH SYNOPSIS\n", out);
  for (int i = 0; i < command->n_verbs; i++) {
    const CommandVerb *verb = &command->verbs[i];
    bool implied = i == command->implied_verb;
    fprintf(out, "%s\\fB%s\\fR %s\\fB%s\\fR%s \\fI%s\\fR [\\fIOPTION\\fR...]\n", i ? ".br\n" : "", command->name,
            implied ? "[" : "", verb->name, implied ? "]" : "", verb->operands);
  }
}

static void write_verbs(FILE *out, const Command *command) {
  fputs(".SH VERBS\n", out);
  for (int i = 0; i < command->n_verbs; i++) {
    const CommandVerb *verb = &command->verbs[i];
    write_tagged(out, verb->name, verb->summary);
    if (verb->details) write_line(out, verb->details);
    for (int w = 0; w < command->n_words; w++) {
      char tag[OPTION_TEXT_BYTES];
      snprintf(tag, sizeof tag, "%s %s", verb->name, command->words[w].name);
      if (command->words[w].verb == i) write_tagged(out, tag, command->words[w].help);
    }
  }
}

static void write_notes(FILE *out, const char *title, const CommandNote *notes, int count) {
  if (count) fprintf(out, ".SH %s\n", title);
  for (int i = 0; i < count; i++) write_tagged(out, notes[i].name, notes[i].help);
}

static void write_examples(FILE *out, const Command *command) {
  fputs(".SH EXAMPLES\n.nf\n", out);
  for (int i = 0; i < command->n_verbs; i++) write_line(out, command->verbs[i].example);
  fputs(".fi\n", out);
}

void write_manual(FILE *out, const Command *command) {
  size_t name = strlen(command->name) + 1; /* the summary begins with it */
  fputs(".TH ", out);
  for (const char *c = command->name; *c; c++) fputc(toupper((unsigned char)*c), out);
  fprintf(out, " 1 \"\" \"rnncc " RNNCC_VERSION "\" \"User Commands\"\n.SH NAME\n%s \\- %.*s\n", command->name,
          (int)strcspn(command->summary + name, "."), command->summary + name);
  write_synopsis(out, command);
  fputs(".SH DESCRIPTION\n", out);
  write_line(out, command->summary);
  write_verbs(out, command);
  write_options(out, command);
  write_notes(out, "ENVIRONMENT", command->variables, command->n_variables);
  write_notes(out, "EXIT STATUS", command->exits, command->n_exits);
  write_examples(out, command);
  fprintf(out, ".SH SEE ALSO\n\\fB%s\\fR(1)\n", strcmp(command->name, "rnncc") ? "rnncc" : "rnnrun");
}
