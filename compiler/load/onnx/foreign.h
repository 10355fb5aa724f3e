/* SPDX-License-Identifier: MIT */
/* Files that people take for ONNX models. */
#ifndef RNNCC_ONNX_FOREIGN_H
#define RNNCC_ONNX_FOREIGN_H

#include "support/files.h"

/* What a file that is no ONNX model seems to be, by its first bytes: "a page of HTML". NULL: not known. */
const char *foreign_kind(FileBytes bytes);

#endif
