/* SPDX-License-Identifier: MIT */
/* Pages made from a program's table of options at build time. */
#ifndef PAGES_H
#define PAGES_H

#include "command.h"

void write_manual(FILE *out, const Command *command); /* for man */
void write_list(FILE *out, const Command *command);   /* tools/docs/options.md's list of options, in Markdown */
void write_bash(FILE *out, const Command *command);   /* completion */
void write_zsh(FILE *out, const Command *command);

/* "compile, tune"; "all verbs". */
enum { VERBS_BYTES = 256 };
const char *verbs_text(const Command *command, const CommandOption *option, char text[VERBS_BYTES]);

/* Whether `word` is among the option's words; "FILE": whether its value may be a path. */
bool option_offers(const CommandOption *option, const char *word);
/* Writes the words except FILE, with spaces between. */
void write_words(FILE *out, const CommandOption *option);

#endif
