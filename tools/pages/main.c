/* SPDX-License-Identifier: MIT */
/* write_PROGRAM_pages man|list|bash|zsh: to stdout, of the command line that is COMMAND. */
#include <string.h>

#include "pages.h"

extern const Command COMMAND;

static const struct {
  const char *name;
  void (*write)(FILE *, const Command *);
} pages[] = {{"man", write_manual}, {"list", write_list}, {"bash", write_bash}, {"zsh", write_zsh}};

enum { PAGES = sizeof pages / sizeof *pages };

const char *verbs_text(const Command *command, const CommandOption *option, char text[VERBS_BYTES]) {
  int length = 0, count = 0;
  text[0] = '\0';
  for (int verb = 0; verb < command->n_verbs; verb++) {
    if (!option_takes(option, verb)) continue;
    length +=
        snprintf(text + length, VERBS_BYTES - (size_t)length, "%s%s", count ? ", " : "", command->verbs[verb].name);
    count++;
  }
  return count < command->n_verbs ? text : "all verbs";
}

bool option_offers(const CommandOption *option, const char *word) {
  size_t length = strlen(word);
  for (const char *at = option->words; at && *at; at += strcspn(at, " "), at += strspn(at, " "))
    if (strcspn(at, " ") == length && !strncmp(at, word, length)) return true;
  return false;
}

void write_words(FILE *out, const CommandOption *option) {
  const char *between = "";
  for (const char *at = option->words; at && *at; at += strcspn(at, " "), at += strspn(at, " ")) {
    int length = (int)strcspn(at, " ");
    if (!strncmp(at, "FILE", (size_t)length)) continue;
    fprintf(out, "%s%.*s", between, length, at);
    between = " ";
  }
}

int main(int argc, char **argv) {
  for (int i = 0; i < PAGES && argc == 2; i++) {
    if (strcmp(pages[i].name, argv[1]) != 0) continue;
    pages[i].write(stdout, &COMMAND);
    return fflush(stdout) != 0;
  }
  fprintf(stderr, "usage: %s man|list|bash|zsh\n", argv[0]);
  return 2;
}
