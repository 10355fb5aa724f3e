/* SPDX-License-Identifier: MIT */
/* What clang and lld have written: ELF as <elf.h> has it, of 32 or of 64 bits, little-endian as all targets are. What
 * would be past the file's end is 0, or empty. */
#ifndef RNNCC_ELF_FILE_H
#define RNNCC_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Elf {
  const uint8_t *bytes; /* NULL: it could not be opened */
  uint64_t size;
  bool wide; /* of 64 bits */
} Elf;

Elf elf_open(const char *path);
void elf_close(Elf *elf);

/* An object that clang has written; not opened where there is none: the linker will say so. Ends with EXIT_ENVIRONMENT
 * if it cannot be read. */
Elf elf_open_object(const char *path);

/* Writes over what the file has there. Ends with EXIT_ENVIRONMENT if it cannot. */
void elf_write(const char *path, uint64_t at, const void *bytes, size_t size);

/* The unsigned number of `bytes` bytes at `at`. */
uint64_t elf_number(const Elf *elf, uint64_t at, size_t bytes);

/* The text at `at`, which ends within the file. */
const char *elf_text(const Elf *elf, uint64_t at);

/* A field of the struct of that name at `base`, as ELF_FIELD(elf, 0, Ehdr, e_type). */
#define ELF_FIELD(elf, base, Struct, field)                                                                            \
  ((elf)->wide ? elf_number(elf, (base) + offsetof(Elf64_##Struct, field), sizeof((Elf64_##Struct *)0)->field)         \
               : elf_number(elf, (base) + offsetof(Elf32_##Struct, field), sizeof((Elf32_##Struct *)0)->field))
#define ELF_STRUCT_BYTES(elf, Struct) ((elf)->wide ? sizeof(Elf64_##Struct) : sizeof(Elf32_##Struct))

/* How many sections there are: by the first section's header, where they are 65,280 or more. */
uint64_t elf_section_count(const Elf *elf);

/* Where the header of a section is. */
uint64_t elf_section(const Elf *elf, uint64_t index);

/* The name of the section whose header is there. */
const char *elf_section_name(const Elf *elf, uint64_t header);

/* The first section of the kind (SHT_SYMTAB); 0: there is none. */
uint64_t elf_section_of_kind(const Elf *elf, uint64_t kind);

#endif
