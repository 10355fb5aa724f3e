/* SPDX-License-Identifier: MIT */
/* libclang's index, for all who parse C. */
#ifndef RNNCC_TEMPLATE_LIBCLANG_H
#define RNNCC_TEMPLATE_LIBCLANG_H

#include <clang-c/Index.h>

/* New; the caller disposes of it. What units of it share, they keep in memory. */
CXIndex libclang_index(void);

#endif
