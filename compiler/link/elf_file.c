/* SPDX-License-Identifier: MIT */
#include "link/elf_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

Elf elf_open(const char *path) {
  struct stat status = {0};
  int file = open(path, O_RDONLY | O_CLOEXEC);
  void *bytes = MAP_FAILED;
  if (file >= 0 && !fstat(file, &status) && S_ISREG(status.st_mode) && status.st_size > 0)
    bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  if (file >= 0) close(file);
  if (bytes == MAP_FAILED) return (Elf){0};
  Elf elf = {.bytes = bytes, .size = (uint64_t)status.st_size};
  elf.wide = elf.size > EI_CLASS && elf.bytes[EI_CLASS] == ELFCLASS64;
  return elf;
}

void elf_close(Elf *elf) {
  if (elf->bytes) munmap((void *)(uintptr_t)elf->bytes, elf->size);
  *elf = (Elf){0};
}

uint64_t elf_number(const Elf *elf, uint64_t at, size_t bytes) {
  uint64_t value = 0;
  if (at > elf->size || elf->size - at < bytes) return 0;
  for (size_t i = bytes; i-- > 0;) value = value << 8 | elf->bytes[at + i];
  return value;
}

const char *elf_text(const Elf *elf, uint64_t at) {
  bool ends = at < elf->size && memchr(elf->bytes + at, 0, elf->size - at);
  return ends ? (const char *)elf->bytes + at : "";
}

uint64_t elf_section(const Elf *elf, uint64_t index) {
  return ELF_FIELD(elf, 0, Ehdr, e_shoff) + index * ELF_STRUCT_BYTES(elf, Shdr);
}

uint64_t elf_section_of_kind(const Elf *elf, uint64_t kind) {
  uint64_t count = ELF_FIELD(elf, 0, Ehdr, e_shnum);
  for (uint64_t i = 1; i < count; i++)
    if (ELF_FIELD(elf, elf_section(elf, i), Shdr, sh_type) == kind) return elf_section(elf, i);
  return 0;
}
