#!/bin/bash
# SPDX-License-Identifier: MIT
# Searches pool.pml, turns.pml and versions.pml with spin: check_pool.sh CC. The protocols must pass at each size, and each
# seeded mistake must be found, as this mistake. By default the largest searches have one region a caller less, and every
# third mistake is seeded, ACQUIRE_DROPPED and WAKE_INVERTED among them; in long tests (RNNCC_LONG_TESTS=1) each. Prints SKIP
# if spin is missing.
set -u
cc=$1 folder=$(cd "$(dirname "$0")" && pwd)
model=$folder/pool.pml
command -v spin >/dev/null || { echo "1..0 # SKIP not installed: spin"; exit 0; }
directory=$(mktemp -d) && cd "$directory" || exit 1
trap 'rm -rf "$directory"' EXIT
cases=0 failures=0 mistakes=0

# search OPTIMISATION states|cycles DEFINES...: the verdict, from pan's output in the file `out`. Optimising pan takes
# longer than it saves if there are fewer than a million states.
search() {
  local optimisation=$1 kind=-DSAFETY options=()
  if [ "$2" = cycles ]; then kind=-DNP options=(-l); fi
  shift 2
  spin -a "$@" "$model" >out 2>&1 && "$cc" "$optimisation" -w "$kind" -DCOLLAPSE -o pan pan.c >>out 2>&1 &&
    ./pan -m100000 -w22 "${options[@]}" >>out 2>&1
  case $(grep '^pan:1:' out) in
  *'invalid end state'*) echo stuck ;;
  *'non-progress cycle'*) echo endless ;;
  *known*) echo race ;;
  *freed*) echo freed ;;
  *together*) echo miscounted ;;
  *sleepers*) echo unbalanced ;;
  *holders*) echo overlap ;;
  *in_list*) echo unfair ;;
  *torn*) echo torn ;;
  '') grep -q 'errors: 0' out && ! grep -qE 'max search depth too small|not completed' out && echo right ;;
  esac
}

tap() { # NAME EXPECTED GOT
  cases=$((cases + 1))
  if [ "$2" = "$3" ]; then
    echo "ok $cases - $1"
    grep -h 'states, stored' out | sed 's/^ */# /'
  else
    failures=$((failures + 1))
    echo "not ok $cases - $1"
    echo "# expected: $2, got: ${3:-no verdict}"
    tail -n 40 out | sed 's/^/# /'
  fi
}

right() { # NAME OPTIMISATION states|cycles DEFINES...
  local name=$1
  shift
  tap "$name" right "$(search "$@")"
}

finds() { # MISTAKE AS DEFINES...
  local mistake=$1 as=$2 among=states
  shift 2
  mistakes=$((mistakes + 1))
  [ -n "$long" ] || [ $((mistakes % 3)) = 1 ] || return 0
  if [ "$as" = endless ]; then among=cycles; fi
  tap "finds_${mistake,,}" "$as" "$(search -O0 $among "-D$mistake" "$@")"
}

long=${RNNCC_LONG_TESTS-}
two_callers=(-DCALLERS=2 -DWORKERS=1)
fork=(-DCALLERS=2 -DWORKERS=1 -DREGIONS=1 -DFORKS=1)
fork_of_one=(-DWORKERS=1 -DFORKS=1)
tree=(-DTREE=1)

if [ -n "$long" ]; then
  right three_regions_of_two_workers_end_with_their_results -O1 states -DREGIONS=3
  right two_callers_of_two_regions_share_a_pool -O1 states "${two_callers[@]}"
  right two_callers_share_a_tree -O1 states "${tree[@]}" -DCALLERS=2 -DREGIONS=1
fi
right two_regions_of_two_workers_end_with_their_results -O0 states
right two_callers_share_a_pool -O0 states "${two_callers[@]}" -DREGIONS=1
right futexes_may_wake_for_no_reason -O0 states -DREGIONS=1 -DINTERRUPTIONS=1
right a_process_may_fork_between_runs -O0 states "${fork_of_one[@]}"
right a_process_may_fork_while_another_thread_runs -O0 states "${fork[@]}"
tap every_step_of_the_model_is_reached 3 "$(grep -c '(0 of ' out)"
right no_execution_is_endless -O0 cycles -DREGIONS=1
right two_regions_in_a_tree_of_three_workers_end_with_their_results -O0 states "${tree[@]}" -DWORKERS=3
right no_execution_in_a_tree_is_endless -O0 cycles "${tree[@]}" -DREGIONS=1

# Order of memory.
finds ACQUIRE_DROPPED race
finds RELEASE_DROPPED race
finds PUSH_BEFORE_SLOT race
finds TAKEN_RELAXED race "${two_callers[@]}"
finds GIVEN_BACK_RELAXED race "${two_callers[@]}"

# Sleep and wake.
finds WAKE_BEFORE_PUBLISH stuck
finds LOOK_BEFORE_PUBLISH stuck
finds PUBLISHED_BY_RELEASE stuck
finds LOOK_RELAXED stuck
finds ANNOUNCED_RELAXED stuck
finds LOAD_NOT_SEQ_CST stuck
finds WAKE_ONE stuck
finds WAKE_INVERTED stuck
finds NOT_ANNOUNCED stuck
finds NOT_WITHDRAWN unbalanced
finds GOAL_NOT_RECHECKED stuck
finds SLEEP_UNCONDITIONED stuck
finds SLEEP_LEFT_OUT endless -DREGIONS=1

# Barrier, ring, regions.
finds BARRIER_MISSES_ONE race
finds ORDER_WITHOUT_WRAP miscounted
finds POP_NEXT_SLOT stuck
finds TEAM_FORGETS miscounted
finds END_NOT_AWAITED race
finds BUSY_IGNORED race "${two_callers[@]}"

# In a tree.
finds CHILDREN_NOT_AWAITED race "${tree[@]}"
finds RELEASED_EARLY race "${tree[@]}"
finds LEFT_WITHOUT_CHILDREN race "${tree[@]}"
finds END_NOT_RELEASED stuck "${tree[@]}"
finds NOT_PASSED_ON stuck "${tree[@]}"

# The end, and forks.
finds NOT_JOINED freed
finds GUARD_UNASKED stuck "${fork_of_one[@]}"
finds GUARD_UNASKED_AT_END stuck "${fork_of_one[@]}"

# Turns.
model=$folder/turns.pml
[ -z "$long" ] || right turns_of_three_threads_end -O1 states
right turns_of_four_threads_end -O1 states -DTHREADS=4 -DTURNS=1
right no_turn_is_awaited_for_ever -O0 cycles -DTURNS=1
finds NOT_LOOKED_AGAIN stuck
finds NOBODY_LOOKED_FOR stuck -DNEVER_HANDED_OVER
finds TAKEN_BLINDLY overlap
finds LAST_GOES_FIRST unfair

# Versions of trained weights.
model=$folder/versions.pml
right runs_end_with_the_weights_that_they_began_with -O0 states
[ -z "$long" ] || right so_do_runs_beside_more_changes -O1 states -DCHANGES=2
finds NOT_CHECKED_AGAIN torn
finds CURRENT_WRITTEN torn
finds READERS_IGNORED torn
finds PUBLISHED_BEFORE torn
finds LOCK_LEFT_OUT torn

echo "1..$cases"
exit $((failures > 0))
