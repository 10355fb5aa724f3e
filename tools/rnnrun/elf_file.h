/* SPDX-License-Identifier: MIT */
/* A module as a file, of any machine: what its header and its note say. Nothing of it is loaded. */
#ifndef RNNRUN_ELF_FILE_H
#define RNNRUN_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ElfSegment {
  uint64_t begin, end; /* bytes in the file */
} ElfSegment;

typedef struct ElfFile {
  unsigned char *bytes; /* NULL: absent, or not an ELF file */
  size_t size;
  ElfSegment *notes; /* segments of notes, in the file's order; no byte is in two */
  size_t n_notes;
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

/* How far the notes of a file were read; all 0: nothing yet. */
typedef struct ElfPlace {
  size_t segment; /* whose notes are read up to `at` */
  uint64_t at;    /* 0: from its beginning on */
} ElfPlace;

/* The text of rnncc's next note of the kind: each describes a network for a target. NULL: there is no other. */
const char *elf_note(const ElfFile *file, ElfNote kind, ElfPlace *place);

#endif
