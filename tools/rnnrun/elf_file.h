/* SPDX-License-Identifier: MIT */
/* A module as a file, of any machine: what its header and its note say. Nothing of it is loaded. */
#ifndef RNNRUN_ELF_FILE_H
#define RNNRUN_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ElfFile {
  unsigned char *bytes; /* NULL: absent, or not an ELF file */
  size_t size;
} ElfFile;

ElfFile elf_open(const char *path);
void elf_close(ElfFile *file);

/* Built for another machine than this program, or for a libc with which this program cannot load it. */
bool elf_is_foreign(const ElfFile *file);

/* "aarch64, 64 bits, little-endian, musl"; "x86_64 with glibc". */
enum { ELF_MACHINE_TEXT = 64 };
const char *elf_machine(const ElfFile *file, char text[ELF_MACHINE_TEXT]);
const char *elf_machine_here(char text[ELF_MACHINE_TEXT]);

/* Kinds of notes, as compiler/emit/emit_note.c writes them: lines for people, and the plan as JSON. */
typedef enum ElfNote { ELF_LINES = 1, ELF_PLAN = 2 } ElfNote;

/* The text of rnncc's note `index` of the kind, from 0: each describes a network for a target. NULL: there is no such
 * one. */
const char *elf_note(const ElfFile *file, ElfNote kind, int index);

#endif
