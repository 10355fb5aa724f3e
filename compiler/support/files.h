/* SPDX-License-Identifier: MIT */
/*
 * Files in and out. Reading takes regular files only, whole, so that nothing hangs on a pipe, grows without end or
 * changes under the compiler. Writing goes to a temporary beside the target, which is then renamed: the target is
 * absent, old, or complete. Temporaries still there when the compiler stops are removed.
 */
#ifndef RNNCC_FILES_H
#define RNNCC_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/arena.h"
#include "support/diagnostics.h"

typedef struct FileBytes {
  const uint8_t *data; /* in the arena, 16-byte aligned, with a NUL after the last byte */
  size_t size;
} FileBytes;

FileBytes bytes_of_text(const char *text); /* without the NUL, not copied */

/* fatal_at(where) if it is absent, no regular file, over `limit` bytes, or changes size while it is read. */
FileBytes file_read(Arena *arena, const char *path, size_t limit, Location where);

/* The same of a file to which others append while it is read: what it has of the bytes that it is said to have. */
FileBytes file_read_beside_writers(Arena *arena, const char *path, size_t limit, Location where);

/* file_read() for `name` in the folder of `base`, a name that is not to be trusted: no absolute path, no `..`, nothing
 * that a symbolic link leads out of that folder, but into the one that holds the file which `base` is a link to. A hard
 * link is a file like any other. */
FileBytes file_read_beside(Arena *arena, const char *base, const char *name, size_t limit, Location where);

/* It is an error if this file was read, or is from now on: the output would replace it. So is another output to it,
 * however its folder is spelled. The path must stay. */
void file_is_output(Arena *arena, const char *path);

/* `suffix` in place of what follows the last dot of the path's last part: "a/m.json" -> "a/m.safetensors". */
char *file_with_suffix(Arena *arena, const char *path, const char *suffix);
const char *file_last_part(const char *path);
bool file_has_suffix(const char *path, const char *suffix);

void file_write(Arena *arena, const char *path, const void *data, size_t size);
/* The same of several parts, one after the other. */
void file_write_parts(Arena *arena, const char *path, const FileBytes *parts, int count);
/* Contents and whether it may be executed. */
void file_copy(Arena *arena, const char *from, const char *to);

/* An empty file beside `path`, to be written and committed to it. If the process is killed, the next one that writes
 * there removes it. Another program may not put a file of its own in its place, as compilers do: that has no lock. */
char *temporary_beside(Arena *arena, const char *path);
/* An error where no file can be written. Nothing is left. */
void file_try_output(Arena *arena, const char *path);
/* Renames, with the permissions that a newly created file gets. */
void temporary_commit(const char *temporary, const char *path);
/* A new folder in $TMPDIR or /tmp; removed with what it holds by temporary_remove() or stop(), or if the process is
 * killed by the next call of any other. */
char *temporary_directory(Arena *arena);
void temporary_remove(const char *path); /* file or folder */
/* For a forked child: those that there are, are its parent's. */
void temporaries_disown(void);

#endif
