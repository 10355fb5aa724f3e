/* SPDX-License-Identifier: MIT */
/*
 * To be preloaded: call number $FAIL_CALL of the program itself, from 1 on, to the functions below fails, as they would
 * without room, file descriptors, or a sound disk. Its name is added to the file $FAILED_CALL. Calls of libraries are
 * not counted, nor calls on the folder of temporary files, which only tidy up there. $FAIL_NAME: of that function
 * alone.
 *
 * With $KILL_CALL in place of $FAIL_CALL the program is killed before call number $KILL_CALL; with $CUT_FILE, too, the
 * file of that name loses its second half before call number $FAIL_CALL, which does not fail.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "called_by.h"

static atomic_int calls;

static int cut_file(void) {
  struct stat64 status;
  const char *path = getenv("CUT_FILE");
  return path && !syscall(SYS_stat, path, &status) && !syscall(SYS_truncate, path, status.st_size / 2);
}

static int fails(const char *name, int error, const void *caller) {
  const char *failing = getenv("FAIL_CALL"), *killing = getenv("KILL_CALL"), *wanted = killing ? killing : failing;
  const char *function = getenv("FAIL_NAME");
  if (!wanted || (function && strcmp(function, name) != 0) || !called_by_program(caller)) return 0;
  if (atomic_fetch_add(&calls, 1) + 1 != atoi(wanted)) return 0;
  if (killing) kill(getpid(), SIGKILL);
  tell_failed(name);
  errno = error;
  return !cut_file();
}

/* RESULT NAME(PARAMETERS) that fails with RESULT `failed` and errno ERROR, or is the next library's. */
#define MAY_FAIL(result, name, parameters, arguments, failed, error)                                                   \
  result name parameters {                                                                                             \
    __typeof__(name) *next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name);                                              \
    return fails(#name, error, __builtin_return_address(0)) ? (failed) : next arguments;                               \
  }

MAY_FAIL(ssize_t, read, (int file, void *to, size_t bytes), (file, to, bytes), -1, EIO)
MAY_FAIL(ssize_t, pread64, (int file, void *to, size_t bytes, off64_t from), (file, to, bytes, from), -1, EIO)
MAY_FAIL(ssize_t, pwrite64, (int file, const void *from, size_t bytes, off64_t to), (file, from, bytes, to), -1, ENOSPC)
MAY_FAIL(ssize_t, write, (int file, const void *from, size_t bytes), (file, from, bytes), -1, ENOSPC)
MAY_FAIL(FILE *, fopen64, (const char *path, const char *mode), (path, mode), NULL, EMFILE)
MAY_FAIL(int, fflush, (FILE * file), (file), EOF, ENOSPC)
MAY_FAIL(int, fsync, (int file), (file), -1, EIO)
MAY_FAIL(int, ftruncate64, (int file, off64_t bytes), (file, bytes), -1, EIO)
MAY_FAIL(int, stat64, (const char *path, struct stat64 *status), (path, status), -1, EIO)
MAY_FAIL(int, fstat64, (int file, struct stat64 *status), (file, status), -1, EIO)
MAY_FAIL(int, chmod, (const char *path, mode_t mode), (path, mode), -1, EPERM)
MAY_FAIL(int, fchmod, (int file, mode_t mode), (file, mode), -1, EPERM)
MAY_FAIL(int, mkdir, (const char *path, mode_t mode), (path, mode), -1, ENOSPC)
MAY_FAIL(int, rename, (const char *from, const char *to), (from, to), -1, EIO)
MAY_FAIL(int, unlink, (const char *path), (path), -1, EIO)
MAY_FAIL(int, remove, (const char *path), (path), -1, EIO)
MAY_FAIL(int, chdir, (const char *path), (path), -1, EIO)
MAY_FAIL(int, dup2, (int from, int to), (from, to), -1, EMFILE)
MAY_FAIL(int, flock, (int file, int operation), (file, operation), -1, ENOLCK)
MAY_FAIL(int, pipe2, (int ends[2], int flags), (ends, flags), -1, EMFILE)
MAY_FAIL(int, mkostemp64, (char *path, int flags), (path, flags), -1, ENOSPC)
MAY_FAIL(char *, mkdtemp, (char *path), (path), NULL, ENOSPC)
MAY_FAIL(char *, realpath, (const char *path, char *to), (path, to), NULL, EACCES)
MAY_FAIL(DIR *, opendir, (const char *path), (path), NULL, EMFILE)
MAY_FAIL(struct dirent64 *, readdir64, (DIR * folder), (folder), NULL, EIO)
MAY_FAIL(pid_t, fork, (void), (), -1, EAGAIN)
MAY_FAIL(int, posix_spawnp,
         (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
          char *const arguments[], char *const environment[]),
         (pid, path, actions, attributes, arguments, environment), EAGAIN, EAGAIN)
MAY_FAIL(void *, mmap64, (void *at, size_t bytes, int protection, int flags, int file, off64_t from),
         (at, bytes, protection, flags, file, from), MAP_FAILED, ENOMEM)

/* ferror() is true of a stream from the first failure on. */
static void spoil(FILE *file) { file->_flags |= _IO_ERR_SEEN; }

size_t fread(void *to, size_t bytes, size_t count, FILE *file) {
  size_t (*next)(void *, size_t, size_t, FILE *) =
      (size_t (*)(void *, size_t, size_t, FILE *))dlsym(RTLD_NEXT, "fread");
  if (!fails("fread", EIO, __builtin_return_address(0))) return next(to, bytes, count, file);
  spoil(file);
  return 0;
}

size_t fwrite(const void *from, size_t bytes, size_t count, FILE *file) {
  size_t (*next)(const void *, size_t, size_t, FILE *) =
      (size_t (*)(const void *, size_t, size_t, FILE *))dlsym(RTLD_NEXT, "fwrite");
  if (!fails("fwrite", ENOSPC, __builtin_return_address(0))) return next(from, bytes, count, file);
  spoil(file);
  return 0;
}

int open64(const char *path, int flags, ...) {
  int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
  va_list more;
  va_start(more, flags);
  mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
  va_end(more);
  return fails("open64", EMFILE, __builtin_return_address(0)) ? -1 : next(path, flags, mode);
}
