/* SPDX-License-Identifier: MIT */
/* SANITIZED: 1 if this file is compiled with AddressSanitizer or ThreadSanitizer, which make everything slower. */
#ifndef TESTS_SANITIZED_H
#define TESTS_SANITIZED_H

#define SANITIZED 0
#if defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#undef SANITIZED
#define SANITIZED 1
#endif
#endif

#endif
