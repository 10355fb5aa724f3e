/* SPDX-License-Identifier: MIT */
/* For libraries that are preloaded into rnncc: distinguishes calls of the program itself from those of libraries. */
#ifndef RNNCC_CALLED_BY_H
#define RNNCC_CALLED_BY_H

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

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

/* Adds the name of what fails to the file $FAILED_CALL, by system calls: libc's functions are among those that fail. */
static inline void tell_failed(const char *name) {
  long file = syscall(SYS_openat, AT_FDCWD, getenv("FAILED_CALL"), O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (file < 0) return;
  if (syscall(SYS_write, file, name, strlen(name)) > 0) syscall(SYS_write, file, "\n", 1);
  syscall(SYS_close, file);
}

typedef struct Named {
  uintptr_t address;
  const char *const *names;
  int is_one;
} Named;

static int is_of_named(struct dl_phdr_info *object, size_t size, void *arg) {
  (void)size;
  Named *named = arg;
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD || named->address - (object->dlpi_addr + segment->p_vaddr) >= segment->p_memsz)
      continue;
    for (const char *const *name = named->names; *name; name++) named->is_one |= !!strstr(object->dlpi_name, *name);
    return 1;
  }
  return 0;
}

/* Whether the caller is a library of a name that contains one of these, in the program. */
static inline int called_by_library(const void *caller, const char *const *names) {
  Named named = {.address = (uintptr_t)caller, .names = names};
  if (strcmp(program_invocation_short_name, "rnncc") != 0) return 0;
  dl_iterate_phdr(is_of_named, &named);
  return named.is_one;
}

#endif
