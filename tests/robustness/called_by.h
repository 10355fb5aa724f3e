/* SPDX-License-Identifier: MIT */
/* For libraries that are preloaded into rnncc: distinguishes calls of the program itself from those of libraries. */
#ifndef RNNCC_CALLED_BY_H
#define RNNCC_CALLED_BY_H

#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

typedef struct AddressRange {
  uintptr_t begin, end;
} AddressRange;

/* The first object of the list is the program. */
static int find_program(struct dl_phdr_info *object, size_t size, void *range) {
  (void)size;
  AddressRange *program = range;
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
    uintptr_t end = object->dlpi_addr + segment->p_vaddr + segment->p_memsz;
    if (segment->p_type == PT_LOAD && end > program->end) program->end = end;
  }
  program->begin = object->dlpi_addr;
  return 1;
}

/* `caller`: __builtin_return_address(0) of the function that replaces a libc function. */
static inline int called_by_program(const void *caller) {
  static AddressRange program;
  if (!program.end) dl_iterate_phdr(find_program, &program);
  uintptr_t address = (uintptr_t)caller;
  return program.begin <= address && address < program.end && !strcmp(program_invocation_short_name, "rnncc");
}

#endif
