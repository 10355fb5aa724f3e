/* SPDX-License-Identifier: MIT */
#include "link/elf_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/diagnostics.h"

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

Elf elf_open_object(const char *path) {
  Elf elf = elf_open(path);
  if (!elf.bytes && access(path, F_OK) == 0)
    fatal_at(LOCATION_FILE(path), EXIT_ENVIRONMENT, "an object of clang's cannot be read again");
  return elf;
}

void elf_write(const char *path, uint64_t at, const void *bytes, size_t size) {
  int file = open(path, O_WRONLY | O_CLOEXEC);
  bool good = file >= 0 && pwrite(file, bytes, size, (off_t)at) == (ssize_t)size;
  if (file >= 0) good = !close(file) && good;
  if (!good) fatal_at(LOCATION_FILE(path), EXIT_ENVIRONMENT, "cannot be written");
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

uint64_t elf_section_count(const Elf *elf) {
  uint64_t table = ELF_FIELD(elf, 0, Ehdr, e_shoff), count = ELF_FIELD(elf, 0, Ehdr, e_shnum);
  if (table && !count) count = ELF_FIELD(elf, table, Shdr, sh_size);
  uint64_t most = table < elf->size ? (elf->size - table) / ELF_STRUCT_BYTES(elf, Shdr) : 0;
  return count < most ? count : most;
}

uint64_t elf_section(const Elf *elf, uint64_t index) {
  return ELF_FIELD(elf, 0, Ehdr, e_shoff) + index * ELF_STRUCT_BYTES(elf, Shdr);
}

const char *elf_section_name(const Elf *elf, uint64_t header) {
  uint64_t names = elf_section(elf, ELF_FIELD(elf, 0, Ehdr, e_shstrndx));
  return elf_text(elf, ELF_FIELD(elf, names, Shdr, sh_offset) + ELF_FIELD(elf, header, Shdr, sh_name));
}

uint64_t elf_section_of_kind(const Elf *elf, uint64_t kind) {
  uint64_t count = elf_section_count(elf);
  for (uint64_t i = 1; i < count; i++)
    if (ELF_FIELD(elf, elf_section(elf, i), Shdr, sh_type) == kind) return elf_section(elf, i);
  return 0;
}
