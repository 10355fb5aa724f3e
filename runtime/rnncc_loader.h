/* SPDX-License-Identifier: MIT */
/*
 * Loading a module: dlopen and query, with an error text a person can act on. For C and C++; header only. Before
 * glibc 2.34, link with -ldl.
 *
 *     char error[256];
 *     rnncc_library library;
 *     if (rnncc_load("model.so", &library, error, sizeof error)) die(error);
 *     library.api->model_create(...);
 *     ...
 *     rnncc_unload(&library);      after model_destroy
 *
 * Of a module with several networks, library.api is the first one's table:
 *
 *     const rnncc_api *decoder = rnncc_network(library.api, "decoder", error, sizeof error);
 *     if (!decoder) die(error);
 */
#ifndef RNNCC_LOADER_H
#define RNNCC_LOADER_H

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "rnncc.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rnncc_library {
  void *handle;         /* of dlopen */
  const rnncc_api *api; /* valid until rnncc_unload */
} rnncc_library;

static inline void rnncc_unload(rnncc_library *library) {
  if (library->handle) dlclose(library->handle);
  library->handle = NULL;
  library->api = NULL;
}

/* For a name without a slash dlopen searches the system's folders, but a file in the current folder is meant. */
static inline void *rnncc_open_file(const char *path) {
  char local[4096];
  if (strchr(path, '/')) return dlopen(path, RTLD_NOW | RTLD_LOCAL);
  snprintf(local, sizeof local, "./%s", path);
  return dlopen(local, RTLD_NOW | RTLD_LOCAL);
}

/* Is there something else than a file? Of a pipe reading and dlopen would wait for a writer. */
static inline int rnncc_is_no_file(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

/* How many bytes a file of this machine's form has at least, by its own header; 0: dlopen knows better. */
static inline unsigned long long rnncc_bytes_due(FILE *file) {
  ElfW(Ehdr) header;
  ElfW(Phdr) segment;
  unsigned long long due, end;
  int i;
  if (fread(&header, sizeof header, 1, file) != 1 || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return 0;
  if (header.e_phentsize != sizeof segment || fseek(file, (long)header.e_phoff, SEEK_SET) != 0) return 0;
  due = header.e_phoff + (unsigned long long)header.e_phnum * sizeof segment;
  for (i = 0; i < header.e_phnum && fread(&segment, sizeof segment, 1, file) == 1; i++) {
    end = (unsigned long long)segment.p_offset + segment.p_filesz;
    if (segment.p_type == PT_LOAD && end > due) due = end;
  }
  return due;
}

/* dlopen maps what the header says. Where a file that was cut short ends before, the first access raises SIGBUS. */
static inline int rnncc_is_cut_short(const char *path, unsigned long long *due, long *bytes) {
  FILE *file = fopen(path, "rb");
  if (!file) return 0;
  *due = rnncc_bytes_due(file);
  *bytes = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
  fclose(file);
  return *bytes >= 0 && (unsigned long long)*bytes < *due;
}

/* ELF's number of the machine that this program runs on; EM_NONE: not one of these. */
static inline unsigned rnncc_machine_here(void) {
#if defined __x86_64__
  return EM_X86_64;
#elif defined __i386__
  return EM_386;
#elif defined __aarch64__
  return EM_AARCH64;
#elif defined __arm__
  return EM_ARM;
#elif defined __riscv
  return EM_RISCV;
#elif defined __powerpc64__
  return EM_PPC64;
#else
  return EM_NONE;
#endif
}

static inline const char *rnncc_machine_name(unsigned machine) {
  return machine == EM_X86_64    ? "x86-64"
         : machine == EM_386     ? "x86 of 32 bits"
         : machine == EM_AARCH64 ? "aarch64"
         : machine == EM_ARM     ? "arm of 32 bits"
         : machine == EM_RISCV   ? "riscv"
         : machine == EM_PPC64   ? "ppc64"
                                 : "another machine";
}

/* The machine that an ELF file is for, if it is not this one, where dlopen says that there is no such file; else
 * EM_NONE. */
static inline unsigned rnncc_other_machine(const char *path) {
  unsigned char head[20];
  unsigned machine = EM_NONE;
  FILE *file = fopen(path, "rb");
  if (!file) return EM_NONE;
  if (fread(head, sizeof head, 1, file) == 1 && memcmp(head, ELFMAG, SELFMAG) == 0)
    machine = head[EI_DATA] == ELFDATA2MSB ? head[18] * 256u + head[19] : head[19] * 256u + head[18];
  fclose(file);
  return machine == rnncc_machine_here() || rnncc_machine_here() == EM_NONE ? EM_NONE : machine;
}

/* Has the table all that the first version of this ABI has? Of what came later RNNCC_HAS(api, field) says it. */
static inline int rnncc_is_whole(const rnncc_api *api) {
  return api->abi == RNNCC_ABI && RNNCC_HAS(api, output_shapes) && RNNCC_HAS(api->info, states);
}

/* On success RNNCC_OK. On failure *library is empty and `error`, of error_bytes bytes (both may be 0), says why:
 * RNNCC_ERROR_ARGUMENT if there is no such file or it is no module, RNNCC_ERROR_UNSUPPORTED if it is one that cannot
 * run here. */
static inline rnncc_status rnncc_load(const char *path, rnncc_library *library, char *error, size_t error_bytes) {
  rnncc_module_query_fn query = NULL;
  const char *why = NULL;
  void *symbol;
  unsigned long long due;
  long bytes;
  unsigned machine;
  library->api = NULL;
  library->handle = NULL;
  if (rnncc_is_no_file(path)) {
    snprintf(error, error_bytes, "%s: expected a file, found a folder, a pipe or a device", path);
    return RNNCC_ERROR_ARGUMENT;
  }
  machine = rnncc_other_machine(path);
  if (machine != EM_NONE) {
    snprintf(error, error_bytes, "%s: expected a module for %s, found one for %s", path,
             rnncc_machine_name(rnncc_machine_here()), rnncc_machine_name(machine));
    return RNNCC_ERROR_UNSUPPORTED;
  }
  if (rnncc_is_cut_short(path, &due, &bytes)) {
    snprintf(error, error_bytes, "%s: cut short: expected at least %llu bytes, found %ld", path, due, bytes);
    return RNNCC_ERROR_ARGUMENT;
  }
  library->handle = rnncc_open_file(path);
  if (!library->handle) {
    why = dlerror();
    snprintf(error, error_bytes, "cannot load module: %s", why ? why : path);
    return RNNCC_ERROR_ARGUMENT;
  }
  symbol = dlsym(library->handle, "rnncc_module_query");
  if (!symbol) {
    snprintf(error, error_bytes, "%s: not a module of rnncc, it has no symbol rnncc_module_query", path);
    rnncc_unload(library);
    return RNNCC_ERROR_ARGUMENT;
  }
  memcpy(&query, &symbol, sizeof query); /* ISO C and C++ have no cast from an object to a function pointer */
  library->api = query(RNNCC_ABI, &why);
  if (library->api && !rnncc_is_whole(library->api)) {
    why = "its table of functions is shorter than the first of this ABI: the file is damaged";
    library->api = NULL;
  }
  if (!library->api) {
    snprintf(error, error_bytes, "%s: %s", path, why ? why : "the module cannot run here");
    rnncc_unload(library);
    return RNNCC_ERROR_UNSUPPORTED;
  }
  return RNNCC_OK;
}

/* The table of the module's network of that name. NULL: it has none, and `error`, of error_bytes bytes (both may be 0),
 * says which it has. */
static inline const rnncc_api *rnncc_network(const rnncc_api *api, const char *name, char *error, size_t error_bytes) {
  int32_t i, count = api->n_networks;
  size_t length;
  for (i = 0; i < count; i++)
    if (!strcmp(api->networks[i]->info->name, name)) return api->networks[i];
  length = (size_t)snprintf(error, error_bytes, "the module has no network %s; it has", name);
  for (i = 0; i < count && length < error_bytes; i++)
    length +=
        (size_t)snprintf(error + length, error_bytes - length, "%s %s", i ? "," : "", api->networks[i]->info->name);
  return NULL;
}

#ifdef __cplusplus
}
#endif
#endif
