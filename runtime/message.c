/* SPDX-License-Identifier: MIT */
/* What went wrong, in words, for last_error. */
#include <stdarg.h>
#include <stdio.h>

#include "context.h"

rnncc_status context_fail(rnncc_context *context, rnncc_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(context->error, sizeof context->error, format, arguments);
  va_end(arguments);
  return status;
}

const char *context_last_error(const rnncc_context *context) { return context ? context->error : ""; }
