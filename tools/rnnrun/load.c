/* SPDX-License-Identifier: MIT */
#include "elf_file.h"
#include "session.h"
#include "support.h"
#include "verbs.h"

Session load_module(const char *path) {
  char machine[ELF_MACHINE_TEXT], here[ELF_MACHINE_TEXT];
  ElfFile file = elf_open(path);
  if (elf_is_foreign(&file))
    fail(EXIT_ENVIRONMENT, "%s: for %s; this is %s", path, elf_machine(&file, machine), elf_machine_here(here));
  elf_close(&file);
  return session_load(path);
}
