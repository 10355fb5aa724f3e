/* SPDX-License-Identifier: MIT */
#include "support/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/clock.h"
#include "support/diagnostics.h"
#include "support/files.h"
#include "support/interrupt.h"
#include "support/sandbox.h"
#include "support/text.h"

enum { OUTPUT_BYTES = 1 << 16, MAX_JOBS = 64 };

/* In the process of a body: the programs that it runs stay in its group, to be killed with it. */
static bool within_body;

/* A child that is running: its pid is also its process group, so that its own children can be killed with it; but
 * within a body there is only the body's. */
typedef struct Child {
  Process *process;
  pid_t pid;
  int pipe; /* -1: its output has ended; it may run on */
  double deadline;
  Text output;
} Child;

/* 0, or what failed: without memory these functions do nothing, and the program would run elsewhere. */
static int settle_actions(posix_spawn_file_actions_t *actions, const char *folder, const int streams[3]) {
  int failure = posix_spawn_file_actions_addchdir_np(actions, folder);
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO && !failure; stream++)
    failure = posix_spawn_file_actions_adddup2(actions, streams[stream], stream);
  return failure;
}

int process_spawn(const char *const *argv, const char *folder, int input, int output, int error, pid_t *pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  int group = within_body ? 0 : POSIX_SPAWN_SETPGROUP;
  posix_spawnattr_setflags(&attributes, (short)(group | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  int failure = settle_actions(&actions, folder, (const int[]){input, output, error});
  if (!failure) failure = posix_spawnp(pid, argv[0], &actions, &attributes, (char *const *)argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return failure;
}

static int spawn(const Process *process, int output, pid_t *pid) {
  int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  int failure = process_spawn(process->argv, process->folder, nothing, output, output, pid);
  if (nothing >= 0) close(nothing);
  return failure;
}

/* Of a child: what posix_spawn() does for programs. */
static void settle(const Process *process, int output) {
  int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (!within_body) setpgid(0, 0);
  temporaries_disown();
  if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
      dup2(output, STDERR_FILENO) < 0 || chdir(process->folder) != 0)
    fatal_at(LOCATION_FILE(process->folder), EXIT_ENVIRONMENT, "cannot work there: %s", strerror(errno));
}

static _Noreturn void run_body(const Process *process, int output) {
  settle(process, output);
  within_body = true;
  process->body(process->argument);
  stop(EXIT_OK);
}

static _Noreturn void run_confined(const Process *process, int output) {
  enum { NOT_FOUND = 127 };
  sigset_t none;
  settle(process, output);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  signal(SIGPIPE, SIG_DFL);
  setenv("CCACHE_DISABLE", "1", 1); /* a clang that is ccache could not write its cache */
  if (!sandbox_enter("."))
    fatal_at(LOCATION_FILE(process->argv[0]), EXIT_ENVIRONMENT, "cannot be confined: %s", strerror(errno));
  execvp(process->argv[0], (char *const *)process->argv);
  if (errno == ENOENT) _exit(NOT_FOUND);
  fatal_at(LOCATION_FILE(process->argv[0]), EXIT_ENVIRONMENT, "cannot be started: %s", strerror(errno));
}

static int fork_child(const Process *process, int output, pid_t *pid) {
  fflush(NULL);
  *pid = fork();
  if (*pid < 0) return errno;
  if (*pid == 0) (process->argv ? run_confined : run_body)(process, output);
  if (!within_body) setpgid(*pid, *pid); /* as the child does: whoever comes first */
  return 0;
}

/* False if it could not be started: the outcome is set. */
static bool start(Arena *arena, Process *process, double seconds, Child *child) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    fatal_at(LOCATION_FILE(NULL), EXIT_ENVIRONMENT, "cannot make a pipe: %s", strerror(errno));
  int error = process->argv && !process->confined ? spawn(process, ends[1], &child->pid)
                                                  : fork_child(process, ends[1], &child->pid);
  close(ends[1]);
  if (error) {
    close(ends[0]);
    process->outcome = error == ENOENT ? PROCESS_NOT_FOUND : PROCESS_NOT_STARTED;
    process->output = arena_string(arena, strerror(error));
    return false;
  }
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  child->process = process;
  child->pipe = ends[0];
  child->deadline = seconds_now() + seconds;
  child->output = text_new(arena);
  return true;
}

/* Closes the pipe at the end of the child's output. */
static void drain(Child *child) {
  char buffer[4096];
  ssize_t count;
  while ((count = read(child->pipe, buffer, sizeof buffer)) > 0)
    if (child->output.length < OUTPUT_BYTES) text_bytes(&child->output, buffer, (size_t)count);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  close(child->pipe);
  child->pipe = -1;
}

static void finish(Child *child, int status, bool timed_out) {
  Process *process = child->process;
  process->output = child->output.data;
  process->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  process->outcome = timed_out ? PROCESS_TIMEOUT : process->status == 0 ? PROCESS_OK : PROCESS_FAILED;
  if (process->status == 127 && !timed_out) process->outcome = PROCESS_NOT_FOUND;
}

static void kill_child(Child *child) {
  int status = 0;
  kill(within_body ? child->pid : -child->pid, SIGKILL);
  while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR) continue;
  if (child->pipe >= 0) close(child->pipe);
  finish(child, status, true);
}

/* True if it is no more: its output has ended and so has it, or its time. */
static bool gone(Child *child) {
  int status;
  if (child->pipe < 0 && waitpid(child->pid, &status, WNOHANG) == child->pid) {
    finish(child, status, false);
    return true;
  }
  if (seconds_now() <= child->deadline) return false;
  kill_child(child);
  return true;
}

/* Waits for news of any child; those that are no more leave the list. Not for long at a time: a signal that comes just
 * before poll() does not end it, nor does the end of a child, which mostly comes right after that of its output. */
static int tend(Child *children, int running) {
  struct pollfd polls[MAX_JOBS];
  double wait = 0.1;
  for (int i = 0; i < running; i++) {
    polls[i] = (struct pollfd){.fd = children[i].pipe, .events = POLLIN};
    double left = children[i].pipe < 0 ? 0 : children[i].deadline - seconds_now();
    if (left < wait) wait = left;
  }
  poll(polls, (nfds_t)running, wait > 0 ? (int)(wait * 1000) + 1 : 1);
  int kept = 0;
  for (int i = 0; i < running; i++) {
    if (polls[i].fd >= 0 && polls[i].revents) drain(&children[i]);
    if (!gone(&children[i])) children[kept++] = children[i];
  }
  return kept;
}

/* Ends all children, then this process, of a signal that has come in. */
static _Noreturn void abandon(Child *children, int running) {
  for (int i = 0; i < running; i++) kill_child(&children[i]);
  interrupt_check();
  bug("an interrupt was pending and is not");
}

bool process_run_all(Arena *arena, Process *processes, int count, int jobs, double seconds) {
  Child children[MAX_JOBS];
  int next = 0, running = 0;
  if (jobs < 1) jobs = 1;
  if (jobs > MAX_JOBS) jobs = MAX_JOBS;
  while (next < count || running > 0) {
    while (next < count && running < jobs) running += start(arena, &processes[next++], seconds, &children[running]);
    if (running > 0) running = tend(children, running);
    if (interrupt_pending()) abandon(children, running);
  }
  bool all = true;
  for (int i = 0; i < count; i++) all = all && processes[i].outcome == PROCESS_OK;
  return all;
}
