/* SPDX-License-Identifier: MIT */
#include "pages.h"

/* Escapes bars, which would end a column of the table. */
static void write_text(FILE *out, const char *text) {
  for (; *text; text++) fprintf(out, *text == '|' ? "\\|" : "%c", *text);
}

void write_list(FILE *out, const Command *command) {
  fprintf(out, "| %s | verbs | |\n|---|---|---|\n", command->name);
  for (int i = 0; i < command->n_options; i++) {
    const CommandOption *option = &command->options[i];
    char text[OPTION_TEXT_BYTES], verbs[VERBS_BYTES];
    if (!option->name) continue;
    fputs("| `", out);
    write_text(out, option_text(option, text));
    fprintf(out, "` | %s | ", verbs_text(command, option, verbs));
    write_text(out, option->help);
    if (option->example) {
      fputs(" Example: `", out);
      write_text(out, option->example);
      fputs("`", out);
    }
    fputs(" |\n", out);
  }
}
