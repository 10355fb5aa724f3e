/* SPDX-License-Identifier: MIT */
/*
 * Modules load with glibc from 2.17 on, whichever they are built with. Since 2.34 glibc has its threads in libc.so.6,
 * as new versions of some functions, which no earlier glibc has; the old versions are there as well, and here are asked
 * for. An earlier glibc has them in libpthread.so.0, so that modules name it, too; since 2.34 it is an empty library.
 *
 * With a sanitizer, its own pthread_create must be found, which has no version. riscv64 begins with glibc 2.27.
 */
#ifndef RNNCC_GLIBC_FLOOR_H
#define RNNCC_GLIBC_FLOOR_H

#include <limits.h>

#if defined __x86_64__
#define RNNCC_GLIBC_FIRST "GLIBC_2.2.5"
#define RNNCC_GLIBC_AFFINITY "GLIBC_2.3.4"
#elif defined __aarch64__
#define RNNCC_GLIBC_FIRST "GLIBC_2.17"
#define RNNCC_GLIBC_AFFINITY "GLIBC_2.17"
#elif defined __riscv
#define RNNCC_GLIBC_FIRST "GLIBC_2.27"
#define RNNCC_GLIBC_AFFINITY "GLIBC_2.27"
#elif defined __powerpc64__ && defined __LITTLE_ENDIAN__
#define RNNCC_GLIBC_FIRST "GLIBC_2.17"
#define RNNCC_GLIBC_AFFINITY "GLIBC_2.17"
#elif defined __arm__
#define RNNCC_GLIBC_FIRST "GLIBC_2.4"
#define RNNCC_GLIBC_AFFINITY "GLIBC_2.4"
#elif defined __i386__
#define RNNCC_GLIBC_FIRST "GLIBC_2.0"
#define RNNCC_GLIBC_ATTRIBUTES "GLIBC_2.1"
#define RNNCC_GLIBC_AFFINITY "GLIBC_2.3.4"
#endif

#ifndef RNNCC_GLIBC_ATTRIBUTES
#define RNNCC_GLIBC_ATTRIBUTES RNNCC_GLIBC_FIRST
#endif

#ifdef __has_feature
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#undef RNNCC_GLIBC_FIRST
#endif
#elif defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__
#undef RNNCC_GLIBC_FIRST
#endif

#if defined __GLIBC__ && defined RNNCC_BUILDING_MODULE && defined RNNCC_GLIBC_FIRST
#define RNNCC_OLDER(name, version) __asm__(".symver " #name ", " #name "@" version)
RNNCC_OLDER(pthread_getaffinity_np, RNNCC_GLIBC_AFFINITY);
RNNCC_OLDER(pthread_setaffinity_np, RNNCC_GLIBC_AFFINITY);
RNNCC_OLDER(pthread_attr_setstacksize, RNNCC_GLIBC_ATTRIBUTES);
RNNCC_OLDER(pthread_create, RNNCC_GLIBC_ATTRIBUTES);
RNNCC_OLDER(pthread_join, RNNCC_GLIBC_FIRST);
RNNCC_OLDER(pthread_sigmask, RNNCC_GLIBC_FIRST);
#endif

#endif
