/* SPDX-License-Identifier: MIT */
#include "link/built_runtime.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "link/stack_sizes.h"
#include "machine/targets.h"
#include "sha256.h"
#include "support/clang_program.h"
#include "support/data_directory.h"
#include "support/folder.h"
#include "template/libclang.h"

enum { MAX_SOURCE = 1 << 22, MAX_OBJECT = 1 << 24, HEAD = 2 * SHA256_BYTES };

/* Modules whose weights can be set have some functions more. */
static const struct {
  const char *file;
  bool can_change;
} kinds[] = {{"runtime.built", false}, {"runtime_mutable.built", true}};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* ---- what an object is made from ---- */

static void add_text(Sha256 *hash, const char *text) { sha256_add(hash, text, strlen(text) + 1); }

/* Not of the folders of devices and of other languages: it includes none of them. */
static void add_sources(Arena *arena, Sha256 *hash) {
  const char *folder = arena_format(arena, "%s/runtime", data_directory(arena));
  FileNames sources = folder_list(arena, folder, ".c.h.def");
  for (int i = 0; i < sources.count; i++) {
    const char *path = arena_format(arena, "%s/%s", folder, sources.names[i]);
    FileBytes source = file_read(arena, path, MAX_SOURCE, LOCATION_FILE(path));
    add_text(hash, sources.names[i]);
    sha256_add(hash, &source.size, sizeof source.size);
    sha256_add(hash, source.data, source.size);
  }
}

static void digest_inputs(Arena *arena, const Build *build, const char *text, uint8_t digest[SHA256_BYTES]) {
  Sha256 hash = sha256_new();
  add_text(&hash, RNNCC_CLANG_NAME);
  add_text(&hash, libclang_version(arena)); /* clang's own: packages of both come together */
  for (const char *const *argument = clang_args(arena, build, NULL); *argument; argument++) add_text(&hash, *argument);
  add_text(&hash, stack_sizes_arg);
  add_text(&hash, text);
  add_sources(arena, &hash);
  sha256_end(&hash, digest);
}

/* ---- finding it ---- */

/* Beside the program, where it is installed; in the build, for programs of the build. NULL: there is none. */
static const char *path_of(Arena *arena, const char *file) {
  const char *installed = beside_program(arena, "../lib/rnncc"),
             *path = installed ? arena_format(arena, "%s/%s", installed, file) : NULL;
  if (path && access(path, R_OK) == 0) return path;
  if (strcmp(data_directory(arena), RNNCC_SOURCE_DATA) != 0) return NULL;
  path = arena_format(arena, "%s/%s", RNNCC_BUILT_RUNTIMES, file);
  return access(path, R_OK) == 0 ? path : NULL;
}

static bool is_digest_of(const uint8_t *digest, FileBytes bytes) {
  uint8_t found[SHA256_BYTES];
  sha256(bytes.data, bytes.size, found);
  return memcmp(found, digest, sizeof found) == 0;
}

FileBytes built_runtime(Arena *arena, const Build *build, const char *text) {
  uint8_t digest[SHA256_BYTES];
  bool digested = false;
  if (build->edge || build->name) return (FileBytes){0};
  for (int kind = 0; kind < KINDS && !clang_given(); kind++) {
    const char *path = path_of(arena, kinds[kind].file);
    if (!path) continue;
    if (!digested) digest_inputs(arena, build, text, digest);
    digested = true;
    FileBytes file = file_read(arena, path, MAX_OBJECT, LOCATION_FILE(path));
    if (file.size <= HEAD || memcmp(file.data, digest, SHA256_BYTES) != 0) continue;
    FileBytes object = {file.data + HEAD, file.size - HEAD};
    if (is_digest_of(file.data + SHA256_BYTES, object)) return object;
  }
  return (FileBytes){0};
}

/* ---- making it ---- */

static void make(Arena *arena, const char *text, const char *path) {
  const double seconds = 600;
  const Build build = {.target = target_find("native"), .seconds = seconds};
  char *folder = temporary_directory(arena);
  const char *compiled = compile_runtime(arena, &build, text, folder);
  uint8_t head[HEAD];
  digest_inputs(arena, &build, text, head);
  FileBytes object = file_read(arena, compiled, MAX_OBJECT, LOCATION_FILE(compiled));
  sha256(object.data, object.size, head + SHA256_BYTES);
  file_write_parts(arena, path, (FileBytes[]){{head, sizeof head}, object}, 2);
  temporary_remove(folder);
}

void make_built_runtimes(Arena *arena, const char *folder) {
  unsetenv("RNNCC_CLANG");
  for (int kind = 0; kind < KINDS; kind++)
    make(arena, runtime_text(arena, false, kinds[kind].can_change, NULL),
         arena_format(arena, "%s/%s", folder, kinds[kind].file));
}
