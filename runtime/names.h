/* SPDX-License-Identifier: MIT */
/*
 * The names of a module's globals. All begin with RNNCC_PREFIX, so that several modules link into one program. In a
 * shared object it is rnncc_, where one symbol is seen from outside: rnncc_module_query.
 *
 * The runtime is compiled as one source. What its files have for each other is RUNTIME_LOCAL, no global then.
 */
#ifndef RNNCC_RUNTIME_NAMES_H
#define RNNCC_RUNTIME_NAMES_H

#ifndef RNNCC_PREFIX
#define RNNCC_PREFIX rnncc_
#endif

#define RNNCC_JOIN(prefix, name) prefix##name
#define RNNCC_JOIN_VALUES(prefix, name) RNNCC_JOIN(prefix, name)
#define RNNCC_GLOBAL(name) RNNCC_JOIN_VALUES(RNNCC_PREFIX, name)
#define RNNCC_QUOTE(name) #name
#define RNNCC_QUOTE_VALUE(name) RNNCC_QUOTE(name)
#define RNNCC_GLOBAL_TEXT(name) RNNCC_QUOTE_VALUE(RNNCC_PREFIX) #name

/* What the kernels' objects and the runtime's have for each other. Of several targets, each has a Module of its own
 * name.
 */
#ifndef RNNCC_MODULE
#define RNNCC_MODULE module
#endif
#define rnncc_module RNNCC_GLOBAL(RNNCC_MODULE)
#define rnncc_weights RNNCC_GLOBAL(weights)
#define module_stamp RNNCC_GLOBAL(module_stamp)
#define module_stamp_alone RNNCC_GLOBAL(module_stamp_alone)
#define module_meet RNNCC_GLOBAL(module_meet)
#define team_enter RNNCC_GLOBAL(team_enter)
#define team_await RNNCC_GLOBAL(team_await)

#define rnncc_module_query RNNCC_GLOBAL(module_query)

#ifdef RNNCC_ONE_SOURCE
#define RUNTIME_LOCAL static __attribute__((unused))
#else
#define RUNTIME_LOCAL
#endif

#endif
