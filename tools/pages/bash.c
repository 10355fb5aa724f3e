/* SPDX-License-Identifier: MIT */
/* Completion for bash: a function that knows the verb, the option whose value is due, and the words of that. */
#include "pages.h"

static void write_verb_names(FILE *out, const Command *command, const char *between) {
  for (int i = 0; i < command->n_verbs; i++) fprintf(out, "%s%s", i ? between : "", command->verbs[i].name);
}

static void write_pattern(FILE *out, const Command *command, const CommandOption *option) {
  const char *between = "  ";
  for (int verb = 0; verb < command->n_verbs; verb++) {
    if (!option_takes(option, verb)) continue;
    fprintf(out, "%s%s:--%s", between, command->verbs[verb].name, option->name);
    between = "|";
    if (option->letter) fprintf(out, "|%s:-%c", command->verbs[verb].name, option->letter);
  }
}

/* A case for each option: its possible values. A value that may be left out counts only after an equals sign. */
static void write_values(FILE *out, const Command *command) {
  for (int i = 0; i < command->n_options; i++) {
    const CommandOption *option = &command->options[i];
    if (!option->value) continue;
    write_pattern(out, command, option);
    fprintf(out, ") value=%s words='", option_value_optional(option) ? "$attached" : "1");
    write_words(out, option);
    fprintf(out, "' files=%s ;;\n", option_offers(option, "FILE") ? "1" : "");
  }
}

static void write_options(FILE *out, const Command *command, int verb) {
  fprintf(out, "  %s) options='", command->verbs[verb].name);
  const char *between = "";
  for (int i = 0; i < command->n_options; i++) {
    const CommandOption *option = &command->options[i];
    if (!option_takes(option, verb)) continue;
    fprintf(out, "%s--%s%s", between, option->name, option->value && !option_value_optional(option) ? "=" : "");
    between = " ";
  }
  fputs("' operands='", out);
  between = "";
  for (int i = 0; i < command->n_words; i++) {
    if (command->words[i].verb != verb) continue;
    fprintf(out, "%s%s", between, command->words[i].name);
    between = " ";
  }
  fputs("' ;;\n", out);
}

void write_bash(FILE *out, const Command *command) {
  const char *name = command->name;
  const char *implied = command->implied_verb < 0 ? "" : command->verbs[command->implied_verb].name;
  fprintf(out,
          "# Completion of %s for bash, made from its table of options.\n"
          "_%s() {\n"
          "  local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "  local verb=%s option=$before prefix= attached= value= words= files= options= operands=\n"
          "  # bash splits --option=value at the equals sign, if that is among COMP_WORDBREAKS\n"
          "  if [[ $cur == '=' ]]; then\n"
          "    cur= attached=1\n"
          "  elif [[ $before == '=' ]]; then\n"
          "    option=${COMP_WORDS[COMP_CWORD - 2]} attached=1\n"
          "  elif [[ $cur == --*=* ]]; then\n"
          "    option=${cur%%%%=*} prefix=${cur%%%%=*}= cur=${cur#*=} attached=1\n"
          "  fi\n"
          "  if ((COMP_CWORD > 1)); then\n"
          "    case ${COMP_WORDS[1]} in\n"
          "    ",
          name, name, implied);
  write_verb_names(out, command, "|");
  fputs(") verb=${COMP_WORDS[1]} ;;\n"
        "    esac\n"
        "  fi\n"
        "  case $verb:$option in\n",
        out);
  write_values(out, command);
  fputs("  esac\n"
        "  case $verb in\n",
        out);
  for (int verb = 0; verb < command->n_verbs; verb++) write_options(out, command, verb);
  fputs("  esac\n"
        "  COMPREPLY=()\n"
        "  if [[ ! $value && $cur == -* ]]; then\n"
        "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
        "    [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace 2>/dev/null\n"
        "    return\n"
        "  fi\n"
        "  if [[ ! $value ]]; then\n"
        "    files=1\n"
        "    ((COMP_CWORD == 1)) && words='",
        out);
  write_verb_names(out, command, " ");
  fprintf(out,
          "'\n"
          "    ((COMP_CWORD == 2)) && [[ $operands ]] && words=$operands files=\n"
          "  fi\n"
          "  mapfile -t COMPREPLY < <(compgen -P \"$prefix\" -W \"$words\" -- \"$cur\")\n"
          "  if [[ $files ]]; then\n"
          "    compopt -o filenames 2>/dev/null\n"
          "    mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -P \"$prefix\" -f -- \"$cur\")\n"
          "  fi\n"
          "}\n"
          "complete -F _%s %s\n",
          name, name);
}
