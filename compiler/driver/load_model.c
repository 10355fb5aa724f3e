/* SPDX-License-Identifier: MIT */
#include "driver/load_model.h"

#include "load/load.h"
#include "load/model.h"
#include "load/onnx/onnx.h"
#include "support/files.h"

/* PyTorch saves programs that only PyTorch can read, or weights without a network. */
static bool is_pytorch_file(const char *path) {
  static const char *const suffixes[] = {".pt2", ".pt", ".pth", ".bin", ".ckpt"};
  for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
    if (file_has_suffix(path, suffixes[i])) return true;
  return false;
}

static Graph *read_by_suffix(Arena *arena, const char *path, const ModelSettings *settings) {
  if (file_has_suffix(path, ".json")) return load_json_model(arena, path, settings);
  if (file_has_suffix(path, ".onnx")) return load_onnx_model(arena, path, settings);
  if (is_pytorch_file(path))
    fatal_at(LOCATION_FILE(path), EXIT_UNSUPPORTED,
             "PyTorch's own files (exported programs, state dicts) are not read; export the module to ONNX by "
             "torch.onnx.export, or compile it by tools/from_torch");
  fatal_at(LOCATION_FILE(path), EXIT_UNSUPPORTED, "models are read from .onnx and .json files");
}

Graph *load_model(Arena *arena, const char *path, const ModelSettings *settings) {
  return model_complete(read_by_suffix(arena, path, settings), settings);
}
