/* SPDX-License-Identifier: MIT */
#include "load/onnx/foreign.h"

#include <string.h>

/* `at`: the byte at which the mark stands. */
static const struct {
  size_t at;
  const char *mark, *what;
} KINDS[] = {
    {0, "version https://git-lfs", "a Git LFS pointer (`git lfs pull` fetches the file that it stands for)"},
    {0, "PK\x03\x04", "a zip archive, as torch.save() writes (torch.onnx.export() writes ONNX)"},
    {0, "\x1f\x8b", "a file that gzip made (gunzip unpacks it)"},
    {0, "\x89HDF", "an HDF5 file, as Keras writes (tf2onnx writes ONNX)"},
    {0, "<", "a page of HTML or XML"},
    {0, "{", "JSON (a model in rnncc's own format is called NAME.json)"},
    {4, "TFL3", "a TensorFlow Lite model (tf2onnx writes ONNX)"},
    {4, "ORTM", "a model in ONNX Runtime's own format (the ONNX file that it was made from is read)"},
};

const char *foreign_kind(FileBytes bytes) {
  for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
    size_t length = strlen(KINDS[i].mark), end = KINDS[i].at + length;
    if (bytes.size >= end && memcmp(bytes.data + KINDS[i].at, KINDS[i].mark, length) == 0) return KINDS[i].what;
  }
  return NULL;
}
