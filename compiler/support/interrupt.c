/* SPDX-License-Identifier: MIT */
#include "support/interrupt.h"

#include <signal.h>
#include <stddef.h>

#include "support/diagnostics.h"

static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE /* the reader of stdout or stderr is gone */};

static volatile sig_atomic_t pending; /* the signal's number, 0: none */

static void remember(int signal) { pending = signal; }

/* A signal that the parent has set to be ignored (nohup) stays ignored. Writing past the limit on files' sizes must be
 * an error of the write, like a full disk: by default it is a deadly signal. */
void interrupt_catch(void) {
  signal(SIGXFSZ, SIG_IGN);
  for (size_t i = 0; i < sizeof caught / sizeof *caught; i++) {
    struct sigaction old, action = {.sa_handler = remember};
    if (sigaction(caught[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) sigaction(caught[i], &action, NULL);
  }
}

bool interrupt_pending(void) { return pending != 0; }

void interrupt_check(void) {
  if (!pending) return;
  int number = pending;
  clean_up();
  signal(number, SIG_DFL);
  raise(number);
}
