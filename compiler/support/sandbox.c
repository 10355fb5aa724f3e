/* SPDX-License-Identifier: MIT */
/*
 * Landlock's structures and numbers are written out: the headers of Debian 12 are older than many kernels. Of the
 * rights that a kernel does not know yet none can be taken away there.
 */
#include "support/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LANDLOCK_VERSION = 1, LANDLOCK_PATH_BENEATH = 1 };
enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446 }; /* the same on every architecture */
enum { FIRST_WITH_REFER = 2, FIRST_WITH_TRUNCATE = 3, FIRST_WITH_NET = 4 };

/* Rights over files: writing one, and removing and making entries of folders of every kind. */
enum { WRITE_FILE = 1 << 1, CHANGE_FOLDERS = 0x1ff0, REFER = 1 << 13, TRUNCATE = 1 << 14 };
enum { BIND_AND_CONNECT_TCP = 3 };

typedef struct Ruleset {
  uint64_t files, net;
} Ruleset;

typedef struct __attribute__((packed)) Rule {
  uint64_t allowed;
  int32_t parent;
} Rule;

static long landlock_version(void) { return syscall(CREATE_RULESET, NULL, (size_t)0, LANDLOCK_VERSION); }

bool sandbox_possible(void) { return landlock_version() >= 1; }

static uint64_t rights_of(long version) {
  uint64_t rights = WRITE_FILE | CHANGE_FOLDERS;
  if (version >= FIRST_WITH_REFER) rights |= REFER;
  if (version >= FIRST_WITH_TRUNCATE) rights |= TRUNCATE;
  return rights;
}

static bool allow(int ruleset, const char *path, uint64_t rights) {
  Rule rule = {.allowed = rights, .parent = open(path, O_PATH | O_CLOEXEC)};
  if (rule.parent < 0) return false;
  bool good = syscall(ADD_RULE, ruleset, LANDLOCK_PATH_BENEATH, &rule, 0) == 0;
  int error = errno;
  close(rule.parent);
  errno = error;
  return good;
}

static bool restrict_files(const char *folder) {
  long version = landlock_version();
  if (version < 1) return false;
  uint64_t rights = rights_of(version);
  Ruleset asked = {.files = rights, .net = BIND_AND_CONNECT_TCP};
  size_t bytes = version >= FIRST_WITH_NET ? sizeof asked : offsetof(Ruleset, net);
  int ruleset = (int)syscall(CREATE_RULESET, &asked, bytes, 0);
  if (ruleset < 0) return false;
  bool good = allow(ruleset, folder, rights) && allow(ruleset, "/dev/null", rights & (WRITE_FILE | TRUNCATE)) &&
              syscall(RESTRICT_SELF, ruleset, 0) == 0;
  int error = errno;
  close(ruleset);
  errno = error;
  return good;
}

/* ---- no sockets ---- */

#if defined __x86_64__
#define FILTERED_ARCH AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define FILTERED_ARCH AUDIT_ARCH_AARCH64
#elif defined __riscv && __riscv_xlen == 64
#define FILTERED_ARCH AUDIT_ARCH_RISCV64
#endif

#ifdef FILTERED_ARCH
enum { OTHER_ABI = 0x40000000 }; /* x86-64's x32 has numbers of its own, from there on */

#define REFUSE_IF(test, operand)                                                                                       \
  BPF_JUMP(BPF_JMP | (test) | BPF_K, (uint32_t)(operand), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES)

/* io_uring can open sockets, too. */
static const struct sock_filter no_sockets[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FILTERED_ARCH, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    REFUSE_IF(BPF_JGE, OTHER_ABI),
    REFUSE_IF(BPF_JEQ, SYS_socket),
    REFUSE_IF(BPF_JEQ, SYS_io_uring_setup),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static bool refuse_sockets(void) {
  struct sock_fprog program = {.len = sizeof no_sockets / sizeof *no_sockets,
                               .filter = (struct sock_filter *)no_sockets};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}
#else
static bool refuse_sockets(void) { return true; } /* Landlock refuses TCP's */
#endif

bool sandbox_enter(const char *folder) {
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && restrict_files(folder) && refuse_sockets();
}
