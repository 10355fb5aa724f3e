/* SPDX-License-Identifier: MIT */
/*
 * The turns of runtime/turns.c: who has a pool's threads, and who waits for them. Each thread takes part TURNS times,
 * waiting or not as it likes. Every interleaving of the steps that are atomic in the code is searched; all four of the
 * protocol's accesses are sequentially consistent there, as all are here.
 *
 * Never do two have the threads together; whoever waits gets them; of those who wait when the threads are handed over
 * none has a higher priority than the one who gets them. A thread's priority is its number. With a mistake of those
 * below, one of these fails.
 */
#ifndef THREADS
#define THREADS 3
#endif
#ifndef TURNS
#define TURNS 2
#endif

bool busy;                /* the exchange's word */
byte waiting;             /* the count */
bool in_list[THREADS];    /* under the lock */
bool granted[THREADS];
byte holders;

/* turns_try() */
inline try() { atomic { held = !busy; busy = true } }

/* The list is in the order of priorities: its first is the thread of the highest number. */
inline hand_over() {
  atomic {
    first = THREADS;
    for (k : 0 .. THREADS - 1) {
      if
#ifdef LAST_GOES_FIRST
      :: in_list[k] && first == THREADS -> first = k
#else
      :: in_list[k] -> first = k
#endif
      :: else
      fi
    }
    if
    :: first < THREADS ->
       for (k : first + 1 .. THREADS - 1) { assert(!in_list[k]) }
       in_list[first] = false;
       waiting--
    :: else
    fi;
    k = 0
  }
  if
  :: first < THREADS -> granted[first] = true
  :: else
  fi
}

inline wait_in_turn() {
  atomic { in_list[self] = true; waiting++ }; /* W1 */
#ifndef NOT_LOOKED_AGAIN
  try();                                      /* W2 */
  if
  :: held -> hand_over()
  :: else
  fi;
#endif
  granted[self] -> granted[self] = false
}

inline end_turn() {
  first = THREADS;
#ifndef NEVER_HANDED_OVER
  if
  :: waiting > 0 -> hand_over()
  :: else
  fi;
#endif
  if
  :: first < THREADS -> skip
  :: else ->
     do
     :: busy = false;       /* E1 */
#ifdef NOBODY_LOOKED_FOR
        break
#else
        if
        :: waiting == 0 -> break /* E2 */
        :: else
        fi;
#ifdef TAKEN_BLINDLY
        held = true;
#else
        try();
#endif
        if
        :: !held -> break
        :: else
        fi;
        hand_over();
        if
        :: first < THREADS -> break
        :: else
        fi
#endif
     od
  fi
}

active [THREADS] proctype thread() {
  byte self = _pid, turn, first, k;
  bool held;
  for (turn : 1 .. TURNS) {
    try();
    if
    :: held
    :: !held -> wait_in_turn(); held = true
    :: !held /* and goes on alone */
    fi;
    if
    :: held ->
       holders++;
       assert(holders == 1);
       holders--;
       end_turn()
    :: else
    fi
  }
}
