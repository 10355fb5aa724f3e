/* SPDX-License-Identifier: MIT */
#include "support/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "same_file.h"
#include "support/list.h"

/* EXIT_INVALID for what the user can correct in the command or the model; EXIT_ENVIRONMENT otherwise. */
static ExitCode code_of(int error) {
  switch (error) {
  case ENOENT:
  case ENOTDIR:
  case EISDIR:
  case ELOOP:
  case ENAMETOOLONG:
    return EXIT_INVALID;
  default:
    return EXIT_ENVIRONMENT;
  }
}

static const char *kind_of(mode_t mode) {
  return S_ISDIR(mode)    ? "a folder"
         : S_ISFIFO(mode) ? "a pipe"
         : S_ISSOCK(mode) ? "a socket"
         : S_ISCHR(mode)  ? "a character device"
                          : "a block device";
}

/* Read by calls and not mapped: a map of a file that shrinks raises SIGBUS. How many bytes there are, of `size` at
 * most; -1, with errno: they cannot be read. */
static ssize_t read_all(int file, uint8_t *data, size_t size) {
  size_t done = 0;
  while (done < size) {
    ssize_t got = read(file, data + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += (size_t)got;
  }
  return (ssize_t)done;
}

/* ---- outputs ---- */

static FilePlace *outputs;
static int n_outputs, outputs_capacity;
static Arena *of_inputs; /* those of readers end before */
static FileId *inputs;
static int n_inputs, inputs_capacity;

void file_is_output(Arena *arena, const char *path) {
  FilePlace it = file_place(path);
  for (int i = 0; i < n_inputs; i++)
    if (same_id(inputs[i], it.file))
      fatal_at(LOCATION_FILE(path), EXIT_INVALID,
               "this file is read, and the output would replace it; expected another path for that");
  for (int i = 0; i < n_outputs; i++)
    if (same_place(&outputs[i], &it))
      fatal_at(LOCATION_FILE(path), EXIT_INVALID, "two outputs would be written to this file; expected one for each");
  *LIST_ADD(arena, outputs, n_outputs, outputs_capacity) = it;
}

static void check_is_not_output(const char *path, Location where, const struct stat *status) {
  for (int i = 0; i < n_outputs; i++)
    if (same_id(outputs[i].file, file_id(status)))
      fatal_at(where, EXIT_INVALID,
               "\"%s\" is read, and the output would replace it; expected another path than \"%s\" for that", path,
               outputs[i].path);
}

static void add_input(const struct stat *status) {
  if (!of_inputs) of_inputs = arena_new();
  *LIST_ADD(of_inputs, inputs, n_inputs, inputs_capacity) = file_id(status);
}

/* ---- reading ---- */

static int open_regular(const char *path, Location where, struct stat *status) {
  /* Looked at before it is opened: opening a device may have effects. O_NONBLOCK: a pipe put there since cannot hang
   * us. */
  if (stat(path, status) != 0) fatal_at(where, code_of(errno), "cannot read \"%s\": %s", path, strerror(errno));
  if (S_ISREG(status->st_mode)) {
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0 || fstat(file, status) != 0)
      fatal_at(where, code_of(errno), "cannot read \"%s\": %s", path, strerror(errno));
    if (S_ISREG(status->st_mode)) return file;
    close(file);
  }
  fatal_at(where, EXIT_INVALID, "\"%s\" is %s; a regular file is needed", path, kind_of(status->st_mode));
}

FileBytes bytes_of_text(const char *text) { return (FileBytes){(const uint8_t *)text, strlen(text)}; }

/* As many bytes as the file is said to have, or fewer if it is shorter now; *beyond: whether there are more. */
static FileBytes read_file(Arena *arena, const char *path, size_t limit, Location where, size_t *said, bool *beyond) {
  struct stat status;
  int file = open_regular(path, where, &status);
  check_is_not_output(path, where, &status);
  add_input(&status);
  *said = (size_t)status.st_size;
  if (*said > limit) {
    close(file);
    fatal_at(where, EXIT_LIMIT, "\"%s\" has %zu bytes; at most %zu are read", path, *said, limit);
  }
  uint8_t *data = arena_alloc(arena, *said + 1), next;
  ssize_t got = read_all(file, data, *said);
  int error = errno;
  *beyond = got >= 0 && read(file, &next, 1) != 0;
  close(file);
  if (got < 0) fatal_at(where, EXIT_ENVIRONMENT, "cannot read \"%s\": %s", path, strerror(error));
  return (FileBytes){.data = data, .size = (size_t)got};
}

FileBytes file_read(Arena *arena, const char *path, size_t limit, Location where) {
  size_t said;
  bool beyond;
  FileBytes bytes = read_file(arena, path, limit, where, &said, &beyond);
  if (bytes.size < said || beyond)
    fatal_at(where, EXIT_ENVIRONMENT, "\"%s\" is not the %zu bytes it was said to have: it changed while being read",
             path, said);
  return bytes;
}

FileBytes file_read_beside_writers(Arena *arena, const char *path, size_t limit, Location where) {
  size_t said;
  bool beyond;
  return read_file(arena, path, limit, where, &said, &beyond);
}

static bool has_parent_part(const char *name) {
  while (true) {
    size_t length = strcspn(name, "/");
    if (length == 2 && memcmp(name, "..", 2) == 0) return true;
    if (name[length] == 0) return false;
    name += length + 1;
  }
}

static char *real_path(Arena *arena, const char *path, Location where) {
  char *real = realpath(path, NULL);
  if (!real) fatal_at(where, code_of(errno), "cannot read \"%s\": %s", path, strerror(errno));
  char *copy = arena_string(arena, real);
  free(real);
  return copy;
}

/* The folder of a path, with a slash behind it. */
static const char *folder_of(Arena *arena, const char *path) {
  int length = (int)(file_last_part(path) - path);
  return length > 0 ? arena_format(arena, "%.*s", length, path) : "./";
}

/* Is the file in that folder, or in one below it? Both are real paths. */
static bool is_within(const char *file, const char *folder) {
  size_t length = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
  return strncmp(file, folder, length) == 0 && file[length] == '/';
}

/* A download cache links names to its files, which have one folder: that of the model's file is the model's folder,
 * too. */
static bool is_beside(Arena *arena, const char *file, const char *base, const char *folder, Location where) {
  if (is_within(file, real_path(arena, folder, where))) return true;
  return is_within(file, real_path(arena, folder_of(arena, real_path(arena, base, where)), where));
}

FileBytes file_read_beside(Arena *arena, const char *base, const char *name, size_t limit, Location where) {
  if (name[0] == 0) fatal_at(where, EXIT_INVALID, "the file name is empty");
  if (name[0] == '/')
    fatal_at(where, EXIT_INVALID, "\"%s\" is an absolute path; give one relative to the model's folder", name);
  if (has_parent_part(name))
    fatal_at(where, EXIT_INVALID, "\"%s\" leaves the model's folder through \"..\"; put the file in it", name);
  const char *folder = folder_of(arena, base);
  const char *real = real_path(arena, arena_format(arena, "%s%s", folder, name), where);
  if (!is_beside(arena, real, base, folder, where))
    fatal_at(where, EXIT_INVALID, "\"%s\" leads out of the model's folder; put the file in it", name);
  return file_read(arena, real, limit, where);
}

const char *file_last_part(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

bool file_has_suffix(const char *path, const char *suffix) {
  size_t length = strlen(path), suffix_length = strlen(suffix);
  return length > suffix_length && strcmp(path + length - suffix_length, suffix) == 0;
}

char *file_with_suffix(Arena *arena, const char *path, const char *suffix) {
  const char *last = file_last_part(path);
  const char *dot = strrchr(last, '.');
  int length = (int)(dot && dot != last ? dot - path : (ptrdiff_t)strlen(path));
  return arena_format(arena, "%.*s%s", length, path, suffix);
}

static bool write_parts(FILE *file, const FileBytes *parts, int count) {
  for (int i = 0; i < count; i++)
    if (fwrite(parts[i].data, 1, parts[i].size, file) != parts[i].size) return false;
  return true;
}

void file_write(Arena *arena, const char *path, const void *data, size_t size) {
  file_write_parts(arena, path, &(FileBytes){.data = data, .size = size}, 1);
}

void file_write_parts(Arena *arena, const char *path, const FileBytes *parts, int count) {
  char *temporary = temporary_beside(arena, path);
  FILE *file = fopen(temporary, "wb");
  bool good = file && write_parts(file, parts, count);
  int error = errno;
  if (file && fclose(file) != 0 && good) good = false, error = errno;
  if (!good) fatal_at(LOCATION_FILE(path), EXIT_ENVIRONMENT, "cannot write: %s", strerror(error));
  temporary_commit(temporary, path);
}

/* False, with errno, where reading or writing fails. In pieces, as a module may be large, each by one write. */
static bool copy_bytes(FILE *in, FILE *out, char *piece, size_t bytes) {
  size_t got;
  setvbuf(out, NULL, _IONBF, 0);
  while ((got = fread(piece, 1, bytes, in)) > 0)
    if (fwrite(piece, 1, got, out) != got) return false;
  return !ferror(in);
}

/* Linux keeps what is written at once in as large pages of its cache as fit, on file systems that can: in pieces of a
 * whole number of huge pages a module's weights are mapped by huge ones. */
void file_copy(Arena *arena, const char *from, const char *to) {
  enum { PIECE_BYTES = 1 << 22 };
  char *temporary = temporary_beside(arena, to);
  FILE *in = fopen(from, "rb"), *out = fopen(temporary, "wb");
  struct stat status;
  bool good = in && out && copy_bytes(in, out, arena_alloc(arena, PIECE_BYTES), PIECE_BYTES) &&
              fstat(fileno(in), &status) == 0 && fchmod(fileno(out), status.st_mode & 0777) == 0;
  int error = errno;
  if (in) fclose(in);
  if (out && fclose(out) != 0 && good) good = false, error = errno;
  if (!good) fatal_at(LOCATION_FILE(to), EXIT_ENVIRONMENT, "cannot copy %s to it: %s", from, strerror(error));
  temporary_commit(temporary, to);
}
