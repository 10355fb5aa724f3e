/* SPDX-License-Identifier: MIT */
/*
 * The clang of the build, but objects of modules are kept in $RNNCC_CLANG_CACHE, by the content of all that they are
 * made from: the runtime is compiled once, and so is a unit that several tests, stages or runs of the tests make. What
 * the intrinsics of a CPU need is precompiled, and on top of it the headers that most units include: of a small unit
 * they are most of what clang reads. Modules are linked by the command that clang would run, which is kept, too.
 * Besides, clang.py sets $RNNCC_CLANG_VERSION, and $RNNCC_CLANG_WITHOUT_PASSES, options in place of -O3: these modules,
 * if of x86-64, are linked by gold, or by GNU's older linker where there is none: they start in a tenth of lld's time;
 * their runtime is optimised all the same where other modules have it, too. Not a script, as it runs three times for
 * each of some thousand modules.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sha256.h"
#include "support/files.h"
#include "support/process.h"
#include "support/text.h"

enum { MAX_FILE_BYTES = 1 << 30, MAX_KEPT_WEIGHTS_BYTES = 2000000, MAX_SECONDS = 3600 };

typedef struct Call {
  Arena *arena;
  const char *cache;      /* a folder */
  const char **arguments; /* of clang, with its name; NULL-terminated */
  int count;
} Call;

static const char *environment(const char *name) {
  const char *value = getenv(name);
  if (!value) fatal_at(LOCATION_FILE("cached_clang"), EXIT_ENVIRONMENT, "expected $%s to be set", name);
  return value;
}

static bool ends_in(const Call *call, const char *const last[4]) {
  if (call->count < 4) return false;
  for (int i = 0; i < 4; i++)
    if (strcmp(call->arguments[call->count - 4 + i], last[i]) != 0) return false;
  return true;
}

/* The call without its last arguments, and with others in their place. */
static Call changed(const Call *call, int dropped, const char *const *added, int count) {
  Call other = *call;
  other.count = call->count - dropped;
  other.arguments = ARENA_ARRAY(call->arena, const char *, other.count + count + 1);
  memcpy(other.arguments, call->arguments, (size_t)other.count * sizeof *other.arguments);
  for (int i = 0; i < count; i++) other.arguments[other.count++] = added[i];
  return other;
}

/* What clang says; where it fails, this program ends as clang did. */
static const char *run(const Call *call) {
  Process clang = {.argv = call->arguments, .folder = "."};
  if (process_run_all(call->arena, &clang, 1, 1, MAX_SECONDS)) return clang.output;
  fputs(clang.output, stderr);
  stop(clang.outcome == PROCESS_FAILED ? clang.status : EXIT_ENVIRONMENT);
}

static _Noreturn void become(const Call *call) {
  execvp(call->arguments[0], (char *const *)call->arguments);
  fatal_at(LOCATION_FILE(call->arguments[0]), EXIT_ENVIRONMENT, "cannot run it: %s", strerror(errno));
}

/* Others may be making the same file. */
static void make(const Call *call, const char *file) {
  char *folder = temporary_directory(call->arena), *made = arena_format(call->arena, "%s/made.o", folder);
  Call whole = changed(call, 0, (const char *[]){"-o", made}, 2);
  fputs(run(&whole), stderr);
  file_copy(call->arena, made, file);
  temporary_remove(folder);
}

/* ---- keys ---- */

static bool is_include(const char *argument) { return !strncmp(argument, "-I", 2); }

/* Where the files lie that are included, is not part of it. */
static Sha256 hash_of(const Call *call) {
  Sha256 hash = sha256_new();
  const char *version = environment("RNNCC_CLANG_VERSION");
  sha256_add(&hash, version, strlen(version) + 1);
  for (int i = 0; i < call->count; i++)
    if (!is_include(call->arguments[i])) sha256_add(&hash, call->arguments[i], strlen(call->arguments[i]) + 1);
  return hash;
}

static void add_file(const Call *call, Sha256 *hash, const char *path) {
  FileBytes bytes = file_read(call->arena, path, MAX_FILE_BYTES, LOCATION_FILE(path));
  sha256_add(hash, file_last_part(path), strlen(file_last_part(path)) + 1);
  sha256_add(hash, &bytes.size, sizeof bytes.size);
  sha256_add(hash, bytes.data, bytes.size);
}

static int is_header(const struct dirent *entry) {
  return file_has_suffix(entry->d_name, ".h") || file_has_suffix(entry->d_name, ".def");
}

/* network.c, or network_x86_64_v3.c of several targets. */
static bool is_unit(const char *name) { return !strncmp(name, "network", 7) && file_has_suffix(name, ".c"); }

static int is_runtime(const struct dirent *entry) {
  return is_header(entry) || (file_has_suffix(entry->d_name, ".c") && !is_unit(entry->d_name));
}

static void add_folder(const Call *call, Sha256 *hash, const char *folder, int wanted(const struct dirent *)) {
  struct dirent **entries;
  int count = scandir(folder, &entries, wanted, alphasort);
  for (int i = 0; i < count; i++) {
    add_file(call, hash, arena_format(call->arena, "%s/%s", folder, entries[i]->d_name));
    free(entries[i]);
  }
  if (count >= 0) free(entries);
}

static const char *kept_file(const Call *call, const char *name, Sha256 *hash, const char *suffix) {
  uint8_t digest[SHA256_BYTES];
  char hex[SHA256_HEX_BYTES];
  sha256_end(hash, digest);
  sha256_hex(digest, hex);
  return arena_format(call->arena, "%s/%s-%s%s", call->cache, name, hex, suffix);
}

/* What was used longest ago is removed first. */
static void mark_used(const char *file) { utimensat(AT_FDCWD, file, NULL, 0); }

static void make_unless_kept(const Call *call, const char *file) {
  if (access(file, R_OK) != 0) make(call, file);
  mark_used(file);
}

/* ---- compiling ---- */

static const char *const runtime_end[4] = {"-c", "runtime.c", "-o", "runtime.o"};

/* Does the call end in -c network.c -o network.o, or in those of another unit? */
static bool compiles_unit(const Call *call) {
  if (call->count < 4 || !is_unit(call->arguments[call->count - 3])) return false;
  const char *source = call->arguments[call->count - 3];
  return ends_in(call, (const char *[]){"-c", source, "-o", file_with_suffix(call->arena, source, ".o")});
}

/* The files of all folders that are searched for what is included. Of templates the headers alone: theirs are half of
 * all sources, and the runtime includes none. */
static void add_included(const Call *call, Sha256 *hash, int wanted(const struct dirent *)) {
  for (int i = 0; i < call->count; i++) {
    const char *folder = call->arguments[i] + 2;
    if (!is_include(call->arguments[i])) continue;
    bool has_templates = !strcmp(file_last_part(folder), "templates");
    add_folder(call, hash, folder, has_templates ? is_header : wanted);
    add_folder(call, hash, arena_format(call->arena, "%s/simd", folder), wanted);
    add_folder(call, hash, arena_format(call->arena, "%s/edge", folder), wanted);
  }
}

/* Options, divided by spaces, in place of one. */
static Call replaced(const Call *call, const char *argument, const char *options) {
  Call other = changed(call, call->count, NULL, 0);
  for (int i = 0; i < call->count; i++) {
    if (strcmp(call->arguments[i], argument) != 0) {
      other = changed(&other, 0, &call->arguments[i], 1);
      continue;
    }
    char *rest = arena_string(call->arena, options);
    for (const char *option; (option = strsep(&rest, " "));) other = changed(&other, 0, &option, 1);
  }
  return other;
}

/* The options for a module that is not about what clang makes of it; NULL for the others. */
static const char *without_passes(void) {
  const char *options = getenv("RNNCC_CLANG_WITHOUT_PASSES");
  return options && *options ? options : NULL;
}

/* A library's, whose globals begin with its name, or that of a module of several, whose names it has: no other module
 * will take it from the cache. */
static bool is_of_one_module(const Call *call) {
  static const char several[] = "#define RNNCC_MODULES", library[] = "-DRNNCC_PREFIX=";
  for (int i = 0; i < call->count; i++)
    if (!strncmp(call->arguments[i], library, strlen(library))) return true;
  FileBytes text = file_read(call->arena, "runtime.c", MAX_FILE_BYTES, LOCATION_FILE("runtime.c"));
  return memmem(text.data, text.size, several, strlen(several));
}

static void compile_runtime(const Call *call) {
  Call command = changed(call, 2, NULL, 0);
  if (without_passes() && is_of_one_module(call)) command = replaced(&command, "-O3", without_passes());
  Sha256 hash = hash_of(&command);
  add_included(call, &hash, is_runtime);
  const char *kept = kept_file(call, "runtime", &hash, ".o");
  make_unless_kept(&command, kept);
  file_copy(call->arena, kept, "runtime.o");
}

/* The call that precompiles a header. */
static Call precompiling(const Call *call, const char *header) {
  return changed(call, 0, (const char *[]){"-Xclang", "-fno-pch-timestamp", "-x", "c-header", header}, 5);
}

static const char *precompiled_intrinsics(const Call *command) {
  Call intrinsics = changed(command, command->count, NULL, 0);
  for (int i = 0; i < command->count - 2; i++) /* but -c network.c */
    if (!is_include(command->arguments[i])) intrinsics = changed(&intrinsics, 0, &command->arguments[i], 1);
  intrinsics = precompiling(&intrinsics, INTRINSICS);
  Sha256 hash = hash_of(&intrinsics);
  add_file(command, &hash, INTRINSICS);
  const char *kept = kept_file(command, "intrinsics", &hash, ".pch");
  make_unless_kept(&intrinsics, kept);
  return kept;
}

/* Headers that many units include, as unit_headers.h has them. */
static const struct {
  const char *line, *macro;
} often_included[] = {{"\n#include \"knobs.h\"\n", "-DWITH_KNOBS"},
                      {"\n#include \"simd/math.h\"\n", "-DWITH_MATH"},
                      {"\n#include \"panel_narrow.h\"\n", "-DWITH_NARROW_PANELS"}};

/* The macros that a unit defines before it includes a header, `#define NAME VALUE`, as options. */
static Call with_macros(const Call *call, const char *text) {
  static const char define[] = "#define ";
  Call other = *call;
  const char *end = strstr(text, "\n#include ");
  for (const char *at = text; (at = strstr(at, define)) && at < end; at++) {
    const char *name = at + strlen(define);
    size_t length = strcspn(name, " "), value = strcspn(name + length + 1, "\n");
    const char *option = arena_format(call->arena, "-D%.*s=%.*s", (int)length, name, (int)value, name + length + 1);
    other = changed(&other, 0, &option, 1);
  }
  return other;
}

/* With the headers of this unit. Where they are read from is in what clang keeps; "." is another folder in each call,
 * and may have headers of its own. */
static const char *precompiled_headers(const Call *command, const char *text) {
  const char *intrinsics = precompiled_intrinsics(command);
  bool own = access("kernel.h", R_OK) == 0;
  if (own || !strstr(text, "\n#include \"kernel.h\"\n") || !strstr(text, "\n#include \"module.h\"\n"))
    return intrinsics;
  Call headers = changed(command, 2, (const char *[]){"-include-pch", intrinsics}, 2);
  headers = with_macros(&headers, text);
  for (size_t i = 0; i < sizeof often_included / sizeof *often_included; i++)
    if (strstr(text, often_included[i].line)) headers = changed(&headers, 0, &often_included[i].macro, 1);
  headers = precompiling(&headers, UNIT_HEADERS);
  Sha256 hash = sha256_new();
  for (int i = 0; i < headers.count; i++) sha256_add(&hash, headers.arguments[i], strlen(headers.arguments[i]) + 1);
  add_file(command, &hash, UNIT_HEADERS);
  add_included(command, &hash, is_header);
  const char *kept = kept_file(command, "headers", &hash, ".pch");
  make_unless_kept(&headers, kept);
  return kept;
}

/* Weights of real networks become part of the object: too large to be kept. */
static bool is_large(const char *weights) {
  struct stat status;
  return stat(weights, &status) == 0 && status.st_size > MAX_KEPT_WEIGHTS_BYTES;
}

static void make_object(const Call *command, const char *source, const char *object) {
  FileBytes text = file_read(command->arena, source, MAX_FILE_BYTES, LOCATION_FILE(source));
  const char *headers = precompiled_headers(command, (const char *)text.data);
  Call whole = changed(command, 0, (const char *[]){"-include-pch", headers}, 2);
  make(&whole, object);
}

static void compile_unit(const Call *call) {
  const char *source = call->arguments[call->count - 3], *object = call->arguments[call->count - 1];
  Call command = changed(call, 2, NULL, 0);
  if (without_passes()) command = replaced(&command, "-O3", without_passes());
  if (is_large("weights.bin")) {
    make_object(&command, source, object);
    return;
  }
  Sha256 hash = hash_of(&command);
  add_included(call, &hash, is_header);
  add_file(call, &hash, source);
  add_file(call, &hash, "weights.bin");
  const char *kept = kept_file(call, "network", &hash, ".o");
  if (access(kept, R_OK) != 0) make_object(&command, source, kept);
  mark_used(kept);
  file_copy(call->arena, kept, object);
}

/* ---- linking ---- */

static const char *const module_end[4] = {"network.o", "runtime.o", "-o", "module.so"};

static const char *target_of(const Call *call) {
  for (int i = 0; i < call->count; i++)
    if (!strncmp(call->arguments[i], "--target=", strlen("--target="))) return call->arguments[i] + strlen("--target=");
  return "native";
}

static bool begins_with(const Call *call, const char *file, const Text *heading) {
  if (access(file, R_OK) != 0) return false;
  FileBytes bytes = file_read(call->arena, file, MAX_FILE_BYTES, LOCATION_FILE(file));
  return bytes.size >= heading->length && !memcmp(bytes.data, heading->data, heading->length);
}

/* The last line that clang prints is the command. Where it fails (a part of the toolchain has been installed since),
 * clang links. */
static void keep_link_command(const Call *call, const char *file, Text *script) {
  Call dry = changed(call, 0, (const char *[]){"-###"}, 1);
  char *said = arena_string(call->arena, run(&dry)), *end = said + strlen(said);
  while (end > said && end[-1] == '\n') *--end = 0;
  const char *line = strrchr(said, '\n');
  text_add(script, "%s 2>/dev/null || exec " CLANG " \"$@\"\n", line ? line + 1 : said);
  file_write(call->arena, file, script->data, script->length);
}

/* gold reads libc in two thirds of the time that the other takes, but would export symbols of its own. The path of the
 * list of exports may have spaces and commas. */
static Call linked_by_gnu(const Call *call) {
  if (access("/usr/bin/ld.gold", X_OK) != 0) return replaced(call, "-fuse-ld=lld", "-fuse-ld=bfd");
  Call gold = replaced(call, "-fuse-ld=lld", "-fuse-ld=gold");
  return changed(&gold, 0, (const char *[]){"-Xlinker", "--version-script=" EXPORTS}, 2);
}

static void link_module(const Call *call) {
  bool gnu = without_passes() && !strncmp(target_of(call), "x86_64", strlen("x86_64"));
  Call command = gnu ? linked_by_gnu(call) : *call;
  const char *file = arena_format(call->arena, "%s/link-%s-%s", call->cache, gnu ? "gnu" : "lld", target_of(call));
  Text script = text_new(call->arena);
  text_add(&script, "# %s:", environment("RNNCC_CLANG_VERSION"));
  for (int i = 0; i < command.count; i++) text_add(&script, " %s", command.arguments[i]);
  text_add(&script, "\n");
  if (!begins_with(call, file, &script)) keep_link_command(&command, file, &script);
  Call shell = changed(call, call->count, (const char *[]){"/bin/sh", file}, 2);
  shell = changed(&shell, 0, call->arguments + 1, call->count - 1);
  become(&shell);
}

int main(int argc, char **argv) {
  Call call = {.arena = arena_new(), .count = argc, .arguments = (const char **)argv};
  call.arguments[0] = CLANG;
  bool runtime = ends_in(&call, runtime_end), unit = compiles_unit(&call);
  if (!runtime && !unit && !ends_in(&call, module_end)) become(&call);
  call.cache = environment("RNNCC_CLANG_CACHE");
  if (runtime)
    compile_runtime(&call);
  else if (unit)
    compile_unit(&call);
  else
    link_module(&call);
  stop(EXIT_OK);
}
