/* SPDX-License-Identifier: MIT */
/* Windows, the Fourier transform, and what comes with them. */
#include "graph/shape.h"

/* More are a mistake: they are computed by the compiler, and stand in the module. */
enum { MAX_WINDOW = 1 << 24 };

/* `output_datatype`, f32 if it is not given. */
static bool set_output_type(Node *node) {
  const char *name = node_has(node, "output_datatype") ? node_string(node, "output_datatype") : "f32";
  node->outputs[0]->dtype = dtype_from_name(name);
  return node->outputs[0]->dtype == RNNCC_F32 ||
         shape_unsupported(node, "`output_datatype` is \"%.100s\"; it must be f32", name);
}

/* The input's one integer, which must be known and in 1..MAX_WINDOW. */
static bool read_extent(Graph *graph, const Node *node, int input, int64_t *extent) {
  IntList list;
  if (!operand_ints(graph, node, NULL, input, &list)) return false;
  if (list.n != 1) return shape_error(node, "input %d must be a scalar", input);
  *extent = list.items[0];
  if (*extent > MAX_WINDOW)
    return shape_unsupported(node, "input %d is %lld; at most %d is supported", input, (long long)*extent, MAX_WINDOW);
  return *extent >= 1 || shape_error(node, "input %d is %lld; it must be at least 1", input, (long long)*extent);
}

bool shape_signal_window(Graph *graph, Node *node) {
  int64_t size;
  if (!set_output_type(node) || !read_extent(graph, node, 0, &size)) return false;
  const Dim *extent = dim_const(graph->dims, size);
  set_shape(graph, node, 0, 1, &extent);
  return true;
}

static bool check_edge(Graph *graph, const Node *node, int input) {
  const Value *value = node->inputs[input];
  if (value->data && value_count(value) == 1) return true;
  return shape_unsupported(node, "input %d, %s, must be a constant number", input, shape_text(graph, value));
}

/* [dft_length / 2 + 1, num_mel_bins] */
bool shape_mel_weights(Graph *graph, Node *node) {
  int64_t bins, length, rate;
  if (!set_output_type(node) || !read_extent(graph, node, 0, &bins) || !read_extent(graph, node, 1, &length) ||
      !read_extent(graph, node, 2, &rate) || !check_edge(graph, node, 3) || !check_edge(graph, node, 4))
    return false;
  if ((length / 2 + 1) * bins > MAX_WINDOW)
    return shape_unsupported(node, "its %lld x %lld weights are too many", (long long)(length / 2 + 1),
                             (long long)bins);
  const Dim *shape[] = {dim_const(graph->dims, length / 2 + 1), dim_const(graph->dims, bins)};
  set_shape(graph, node, 0, 2, shape);
  return true;
}
