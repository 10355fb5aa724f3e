/* SPDX-License-Identifier: MIT */
/*
 * safetensors: 8 bytes little-endian header length, a JSON header {"name": {"dtype", "shape", "data_offsets"}, ...},
 * then the tensors' bytes. https://github.com/huggingface/safetensors#format
 */
#ifndef RNNCC_SAFETENSORS_H
#define RNNCC_SAFETENSORS_H

#include "load/constant.h"
#include "support/files.h"

/* All tensors of the file, in the order of its header; their data points into `bytes` where alignment allows. Every
 * byte must belong to exactly one tensor. Stops after reporting all errors. */
Constant *safetensors_read(Arena *arena, const char *file, FileBytes bytes, int *count);

#endif
