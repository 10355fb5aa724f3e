/* SPDX-License-Identifier: MIT */
/*
 * The thread pool's protocol (runtime/pool.c, ring.h, epoch.c, team.c, fork_guard.c) for `spin`, which visits every
 * state that any interleaving can reach. check_pool.sh says with which sizes, and names the mistakes, each a macro
 * here, that the same search must find.
 *
 * Checked are: nobody waits for ever (spin: an invalid end state); no execution is endless; each worker does its part
 * of each region exactly once, on the data it was given, and the caller sees the results; nothing is read that may be
 * being written, or touched once it is freed.
 *
 * Memory is that of C11 without loads that overtake earlier ones' stores: each thread has a view, which says how many
 * of the stores to each place it must know. A store to an epoch, if it releases, leaves its writer's view
 * beside the value; a load may return any store that is not older than the reader's view, and takes over the view
 * beside it if it acquires. Plain data leave no such choice: to touch them without knowing of the last store to them is
 * a race, an assertion that fails. Races in which the reader happens to come first fail in the interleaving in which it
 * comes second. Sequentially consistent loads and stores see each other in the order of the interleaving.
 *
 * If two behaviours differ only in that a thread knows more, or that one more wake-up is sent, only the one that knows
 * or sends less is modelled: it can fail in every way in which the other can.
 *
 * Counters are bytes and start at FIRST, shortly before they wrap, as the runtime's do at 2^32.
 */
#ifndef CALLERS
#define CALLERS 1 /* threads that call pool_run on the one pool */
#endif
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef REGIONS
#define REGIONS 2 /* calls that each caller makes */
#endif
#ifndef INTERRUPTIONS
#define INTERRUPTIONS 0 /* times that FUTEX_WAIT returns spuriously: many would hide lost wake-ups */
#endif
#ifndef FORKS
#define FORKS 0 /* whether the process may fork */
#endif
#ifndef TREE
#define TREE 0 /* 1: the team meets in a tree: a chain, in which the next rank is a worker's only child */
#endif
#define FIRST 254

/* Threads: workers are known by their rank, callers as 0, WORKERS + 1 ... Rank 0 is the caller that holds the pool. */
#define RANKS (WORKERS + 1)
#define THREADS (WORKERS + CALLERS)
#define THREAD_OF_CALLER(c) ((c) == 0 -> 0 : WORKERS + (c))

/* Places: the epochs; then plain data. These are the rings' slots, what belongs to the holder of `busy` (pool->alone,
 * pool->alone_next), and of each caller the input of its region and a cell for each rank's part of the result. */
#define ENTERED(rank) (rank)
#define TAIL(rank) (RANKS + (rank) - 1)
#define RELEASED(rank) (RANKS + WORKERS + (rank))
#define EPOCHS (RANKS + WORKERS + TREE * WORKERS)
#define RING_SLOTS 2
#define SLOT(rank, tail) (EPOCHS + ((rank) - 1) * RING_SLOTS + (tail) % RING_SLOTS)
#define HOLDER (EPOCHS + WORKERS * RING_SLOTS)
#define INPUT(c) (HOLDER + 1 + (c) * (1 + RANKS))
#define CELL(c, rank) (INPUT(c) + 1 + (rank))
#define PLACES (HOLDER + 1 + CALLERS * (1 + RANKS))

#define NO_JOB 0 /* else 1 + the caller it comes from */

typedef View {
  byte newest[PLACES] /* how many stores to the place are known */
};

typedef Messages {
  View beside[2] /* the last two stores, the n-th at n % 2: no thread is further ahead of another */
};

byte stored[PLACES];       /* stores to each place so far */
View known[THREADS];       /* each thread's view */
Messages messages[EPOCHS]; /* the views beside the epochs' values */
byte sleepers[EPOCHS];
byte queue[THREADS];       /* from B2 on, until woken: 1 + the epoch to sleep on */
byte job_in[HOLDER];       /* the rings' slots, at their places */
bool busy;
View beside_busy;          /* left by the last store of 0 to `busy` */
bool alone;                /* whether pool->alone is not 0; belongs to HOLDER */
bool freed, forked;
bool ended[RANKS];         /* the worker's thread has */
byte callers_done;
byte interruptions = INTERRUPTIONS;
hidden byte i, k;          /* of loops within one step */

#define value(n) ((FIRST + (n)) & 255)
#ifdef ORDER_WITHOUT_WRAP
#define reached(value, goal) ((value) >= (goal))
#else
#define reached(value, goal) ((((value) - (goal)) & 255) < 128)
#endif

/* Each access to the pool's memory. */
#define in_memory() assert(!freed)

inline take_over(view) {
  for (k : 0 .. PLACES - 1) {
    if
    :: view.newest[k] > known[self].newest[k] -> known[self].newest[k] = view.newest[k]
    :: else
    fi
  }
  k = 0
}

inline leave(view) {
  for (k : 0 .. PLACES - 1) { view.newest[k] = known[self].newest[k] }
  k = 0
}

/* Plain data; and an epoch that is read relaxed, by a thread sure to know its value. */
inline touch(place) { in_memory(); assert(known[self].newest[place] == stored[place]) }

inline write(place) {
  touch(place);
  stored[place]++;
  known[self].newest[place] = stored[place]
}

/* ---- epoch.c: A1 to B4 are the steps of its first comment ---- */

inline store_epoch(e) { /* A1 */
  in_memory();
  stored[e]++;
  known[self].newest[e] = stored[e];
#ifdef RELEASE_DROPPED
  for (k : 0 .. PLACES - 1) { messages[e].beside[stored[e] % 2].newest[k] = (k == e -> stored[e] : 0) }
  k = 0
#else
  leave(messages[e].beside[stored[e] % 2])
#endif
}

#ifdef WAKE_INVERTED
#define to_be_woken(e) (sleepers[e] == 0)
#else
#define to_be_woken(e) (sleepers[e] > 0)
#endif

/* B4, at the moment of waking. */
inline withdraw(thread, e) {
  queue[thread] = 0;
#if !defined NOT_ANNOUNCED && !defined NOT_WITHDRAWN
  sleepers[e]--
#endif
}

/* FUTEX_WAKE. By the order of the futex's lock, a thread between B2 and B3 will find the value changed. */
inline wake_sleepers(e) {
  in_memory();
  for (i : 0 .. THREADS - 1) {
    if
#ifdef WAKE_ONE
    :: queue[i] == 1 + e -> withdraw(i, e); break
#else
    :: queue[i] == 1 + e -> withdraw(i, e)
#endif
    :: else
    fi
  }
  i = 0
}

inline look_and_wake(e) {
  if
  :: d_step { to_be_woken(e) -> in_memory() }; /* A2 */
     d_step { wake_sleepers(e) }               /* A3 */
  :: d_step { !to_be_woken(e) -> in_memory() }
#if defined LOOK_RELAXED || defined ANNOUNCED_RELAXED || defined PUBLISHED_BY_RELEASE
  :: d_step { true -> in_memory() } /* B1 need not be visible yet */
#endif
  fi
}

/* epoch_advance */
inline epoch_advance(e) {
#if defined WAKE_BEFORE_PUBLISH
  look_and_wake(e);
  d_step { store_epoch(e) }
#elif defined LOOK_BEFORE_PUBLISH
  if
  :: to_be_woken(e) -> d_step { store_epoch(e) }; d_step { wake_sleepers(e) }
  :: !to_be_woken(e) -> d_step { store_epoch(e) }
  fi
#else
  d_step { store_epoch(e) };
  look_and_wake(e)
#endif
}

/* epoch_reached, if it is: by the n-th store; no older one is read afterwards. */
inline load_acquire(e, n) {
  in_memory();
#ifdef ACQUIRE_DROPPED
  known[self].newest[e] = n
#else
  take_over(messages[e].beside[(n) % 2])
#endif
}

/* B2: only the value is used, so it counts as coherent, not as acquiring. */
inline load_before_sleep(e) {
  in_memory();
  queue[self] = 1 + e;
#if !defined LOAD_NOT_SEQ_CST && !defined PUBLISHED_BY_RELEASE
  known[self].newest[e] = stored[e]
#endif
}

#ifdef GOAL_NOT_RECHECKED
#define must_sleep(e, goal) true
#else
#define must_sleep(e, goal) (!reached(value(known[self].newest[e]), goal))
#endif

/*
 * epoch_await. Spinning repeats a load, of which the last one counts. Here it is a step that may succeed once the value
 * is there, by the oldest store that suffices, and may fail as long as an older one may be read. Failing is one step
 * with B1, because it does not depend on what others do in between.
 */
inline epoch_await(e, goal) {
  do
  :: d_step {
       known[self].newest[e] < stored[e] && reached(value(stored[e] - 1), goal) ->
       assert(!reached(value(stored[e] - 2), goal)); /* no thread is two ahead */
       load_acquire(e, stored[e] - 1)
     };
     break
  :: d_step {
       reached(value(stored[e]), goal) &&
         (known[self].newest[e] == stored[e] || !reached(value(stored[e] - 1), goal)) ->
       load_acquire(e, stored[e])
     };
     break
  :: d_step { /* B1 */
       !reached(value(known[self].newest[e]), goal) -> in_memory();
#ifndef NOT_ANNOUNCED
       sleepers[e]++
#endif
     };
     d_step { load_before_sleep(e) };
     if /* B3: FUTEX_WAIT compares with what B2 read, and B2 with the goal */
     :: d_step { !must_sleep(e, goal) && queue[self] != 0 -> withdraw(self, e) }
     :: queue[self] == 0 -> /* woken before it slept */
#ifdef SLEEP_UNCONDITIONED
        d_step { queue[self] = 1 + e; sleepers[e]++ };
        queue[self] == 0
#else
     :: d_step { must_sleep(e, goal) && queue[self] != 0 && known[self].newest[e] < stored[e] -> withdraw(self, e) }
#endif
     :: d_step { must_sleep(e, goal) && queue[self] != 0 && interruptions > 0 -> interruptions--; withdraw(self, e) }
#ifdef SLEEP_LEFT_OUT
     :: d_step { must_sleep(e, goal) && queue[self] != 0 -> withdraw(self, e) }
#else
     :: must_sleep(e, goal) && queue[self] != 0 -> queue[self] == 0 /* asleep */
#endif
     fi
  od
}

/* ---- team.c ---- */

#define is_parent(rank) (TREE && (rank) < WORKERS)

#ifdef BARRIER_MISSES_ONE
#define AWAITED (RANKS - 2)
#else
#define AWAITED (RANKS - 1)
#endif

inline await_all(rank) {
  for (other : 0 .. AWAITED) {
    if
    :: other != rank -> epoch_await(ENTERED(other), passed)
    :: else
    fi
  }
  other = 0
}

inline gather(rank) {
#ifndef CHILDREN_NOT_AWAITED
  epoch_await(ENTERED((rank) + 1), passed);
#endif
  epoch_advance(ENTERED(rank))
}

inline team_enter(rank) {
  passed++;
  if
  :: !is_parent(rank) -> epoch_advance(ENTERED(rank))
  :: else
  fi
}

#if TREE
inline team_await(rank) {
  if
  :: is_parent(rank) -> gather(rank)
  :: else
  fi;
#ifdef RELEASED_EARLY
  if
  :: is_parent(rank) -> epoch_advance(RELEASED(rank))
  :: else
  fi;
#endif
  if
  :: rank != 0 -> epoch_await(RELEASED((rank) - 1), passed)
  :: else
  fi;
#ifdef RELEASED_EARLY
  skip
#else
  if
  :: is_parent(rank) -> epoch_advance(RELEASED(rank))
  :: else
  fi
#endif
}
#else
inline team_await(rank) { await_all(rank) }
#endif

inline team_leave(rank) {
  team_enter(rank);
#if TREE
  if
  :: is_parent(rank) ->
#ifndef LEFT_WITHOUT_CHILDREN
     epoch_await(ENTERED((rank) + 1), passed);
#endif
     epoch_advance(ENTERED(rank));
#ifndef END_NOT_RELEASED
     epoch_advance(RELEASED(rank))
#endif
  :: else
  fi
#endif
}

inline team_await_end(rank) {
#if TREE
  skip
#else
  await_all(rank)
#endif
}

/* ---- ring.h ---- */

inline fill_slot(rank, tail, job) {
  write(SLOT(rank, tail));
  job_in[SLOT(rank, tail)] = job
}

/* ring_push */
inline ring_push(rank, job) {
#ifdef PUSH_BEFORE_SLOT
  epoch_advance(TAIL(rank));
  d_step { fill_slot(rank, value(stored[TAIL(rank)] - 1), job) }
#else
  d_step { touch(TAIL(rank)); fill_slot(rank, value(stored[TAIL(rank)]), job) };
  epoch_advance(TAIL(rank))
#endif
}

#ifdef POP_NEXT_SLOT
#define POPPED 1
#else
#define POPPED 0
#endif

/* ring_pop */
inline ring_pop(rank) {
  epoch_await(TAIL(rank), ((taken + 1) & 255));
  atomic { touch(SLOT(rank, taken + POPPED)); job = job_in[SLOT(rank, taken + POPPED)] }
}

/* ---- pool.c ---- */

/* pool_team */
inline make_team(rank) {
#ifdef TEAM_FORGETS
  passed = FIRST
#else
  d_step { touch(ENTERED(rank)); passed = value(stored[ENTERED(rank)]) }
#endif
}

/* The body of a region does as kernels do: it computes its part from the input, and behind a barrier reads all parts.
 * Between the barrier's halves it works on memory that no other thread writes. */
inline body(c, rank) {
  d_step { touch(INPUT(c)); write(CELL(c, rank)) };
  team_enter(rank);
  d_step { touch(INPUT(c)); touch(CELL(c, rank)) };
  team_await(rank);
  d_step { for (k : 0 .. RANKS - 1) { touch(CELL(c, k)) } k = 0 }
}

/* In the child of a fork there are no other threads. Spin does not reduce processes that may vanish, hence the macro. */
#if FORKS
#define VANISH(from_child) unless { forked && from_child }
#else
#define VANISH(from_child)
#endif

/* worker_main, with pool_work */
proctype worker(byte self) {
  byte taken = FIRST, job, passed, other;
  {
    do
    :: ring_pop(self);
#if TREE && !defined NOT_PASSED_ON
       if
       :: is_parent(self) -> ring_push((self + 1), job)
       :: else
       fi;
#endif
       if
       :: job == NO_JOB -> break
       :: else
       fi;
       make_team(self);
       body(job - 1, self);
       team_leave(self);
       taken++
    od;
    ended[self] = true
  } VANISH(true)
}

/* ring_sleeps and steering are left out: the load may return anything, because it only decides on which CPU a worker
 * wakes up. */
inline pool_push(job) {
  for (rank : 1 .. (TREE -> 1 : WORKERS)) { ring_push(rank, job) }
  rank = 0
}

/* pool_region. The clock sets pool->alone (pool_learn): any region may have been delayed. With a single caller that does
 * not matter, because regions of one thread share nothing. */
inline pool_region(c) {
  pool_push(1 + c);
  make_team(0);
  body(c, 0);
#ifndef END_NOT_AWAITED
  team_leave(0);
  team_await_end(0);
#endif
#if CALLERS > 1
  if
  :: d_step { write(HOLDER); alone = true }
  :: d_step { write(HOLDER); alone = false }
  fi
#endif
}

inline run_alone(c) {
  d_step { touch(INPUT(c)); write(CELL(c, 0)) }
}

inline pool_give_back() {
  d_step {
    in_memory();
#ifndef GIVEN_BACK_RELAXED
    leave(beside_busy);
#endif
    busy = false
  }
}

#ifdef GUARD_UNASKED
#define guard_holds true
#else
#define guard_holds (!forked)
#endif

/* The exchange on `busy`. Only one that finds 0 matters: the others' stores of 1 change nothing. */
inline exchange_busy() {
  in_memory();
#ifdef BUSY_IGNORED
  held = true;
#else
  held = !busy;
#endif
  busy = true;
#ifndef TAKEN_RELAXED
  if
  :: held -> take_over(beside_busy)
  :: else
  fi;
#endif
  k = 0
}

/* pool_take: `held` says whether it succeeded. */
inline pool_take() {
  if
  :: !guard_holds -> held = false
  :: else ->
     d_step { exchange_busy() };
#if CALLERS > 1
     if
     :: d_step { held && !alone -> touch(HOLDER) }
     :: d_step { held && alone -> write(HOLDER); alone = false }; pool_give_back(); held = false
     :: else
     fi
#endif
  fi
}

/* pool_run, by a caller that writes the input before and reads the results after. */
inline pool_run(c) {
  d_step { write(INPUT(c)) };
  pool_take();
  if
  :: held ->
     pool_region(c);
     pool_give_back();
     together++;
     d_step { for (k : 1 .. WORKERS) { touch(CELL(c, k)); assert(stored[CELL(c, k)] == together) } k = 0 }
  :: else -> run_alone(c)
  fi;
  d_step { touch(CELL(c, 0)) }
}

/* From here on this is the child, which has no other threads. The parent would go on as if nothing had happened. */
inline may_fork(c) {
  if
  :: FORKS && c == 0 && !forked -> forked = true
  :: true
  fi
}

/* A host destroys its model once all calls have returned. */
inline await_other_callers() {
  if
  :: d_step {
       callers_done == CALLERS - 1 ->
       for (i : 1 .. CALLERS - 1) { take_over(known[WORKERS + i]) }
       i = 0
     }
  :: forked
  fi
}

/* What a thread did is visible after it is joined. */
inline join_workers() {
  for (rank : 1 .. WORKERS) { d_step { ended[rank] -> take_over(known[rank]) } }
  rank = 0;
  d_step { for (k : 0 .. EPOCHS - 1) { assert(sleepers[k] == 0) } k = 0 }
}

#ifdef GUARD_UNASKED_AT_END
#define threads_are_there true
#else
#define threads_are_there (!forked)
#endif

inline pool_destroy() {
  if
  :: threads_are_there ->
     pool_push(NO_JOB);
#ifndef NOT_JOINED
     join_workers()
#endif
  :: else
  fi;
  freed = true
}

proctype caller(byte c) {
  byte self = THREAD_OF_CALLER(c), passed, other, rank, region, together;
  bool held;
  {
    for (region : 1 .. REGIONS) {
      may_fork(c);
      pool_run(c)
    }
    if
    :: c == 0 -> await_other_callers(); pool_destroy()
    :: else -> callers_done++
    fi
  } VANISH(c != 0)
}

init {
  byte n;
  atomic {
    for (n : 1 .. WORKERS) { run worker(n) }
    for (n : 0 .. CALLERS - 1) { run caller(n) }
  }
}
