/* SPDX-License-Identifier: MIT */
/*
 * The versions of runtime/trained.h: runs read a row of weights, and writers make another one current. Every interleaving
 * of the steps that are atomic in the code is searched. All accesses to `current` and `readers` are sequentially
 * consistent here, and there but for three, which suffice. Taking a run out is a release, which the writer's look
 * acquires. A run's first look at `current` is an acquire: whatever it finds, the second look, after counting, decides.
 * Writers look at `current` relaxed: it is stored under the lock that they have.
 *
 * No run finds its row half written or changed, there is always a row to write, and the last of the writers' numbers is
 * current in the end. With a mistake of those below, one of these fails.
 */
#ifndef RUNS
#define RUNS 2
#endif
#ifndef WRITERS
#define WRITERS 2
#endif
#ifndef CHANGES
#define CHANGES 1 /* of each writer */
#endif
#define ROWS (RUNS + 2) /* each run has one, one is current, and one is written */

byte current;
byte readers[ROWS];
byte row[ROWS];  /* the number that is in it */
bool half[ROWS]; /* while it is written */
bool locked;
byte number, ended;
bool torn;

inline acquire() {
  do
  :: v = current;
     readers[v]++; /* the run counts itself */
#ifdef NOT_CHECKED_AGAIN
     break
#else
     if
     :: current == v -> break
     :: else -> readers[v]--
     fi
#endif
  od
}

inline look() {
  torn = torn || half[v] || row[v] != seen;
  assert(!torn)
}

active [RUNS] proctype reader() {
  byte v, seen;
  acquire();
  seen = row[v];
  look();
  look();
  readers[v]--
}

/* The first row that is not current and has no readers. */
inline spare() {
  v = 0;
  do
  :: v == ROWS -> assert(false)
#ifdef CURRENT_WRITTEN
  :: v < ROWS && readers[v] == 0 -> break
  :: v < ROWS && readers[v] > 0 -> v++
#else
#ifdef READERS_IGNORED
  :: v < ROWS && v != current -> break
  :: v < ROWS && v == current -> v++
#else
  :: v < ROWS && v != current && readers[v] == 0 -> break
  :: v < ROWS && (v == current || readers[v] > 0) -> v++
#endif
#endif
  od
}

active [WRITERS] proctype writer() {
  byte v, k;
  for (k : 1 .. CHANGES) {
#ifndef LOCK_LEFT_OUT
    atomic { !locked -> locked = true };
#endif
    spare();
#ifdef PUBLISHED_BEFORE
    current = v;
#endif
    assert(!half[v]);
    half[v] = true;
    number++;
    row[v] = number;
    half[v] = false;
    current = v;
    locked = false
  }
  atomic {
    ended++;
    assert(ended < WRITERS || row[current] == number)
  }
}
