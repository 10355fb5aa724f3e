/* SPDX-License-Identifier: MIT */
/* Einsum: the equation `ij, jk -> ik`, letter by letter against the operands' axes. */
#include <ctype.h>
#include <string.h>

#include "shapes/einsum.h"
#include "shapes/shape.h"

static const char ARROW[] = "->", DOTS[] = "...";

static int label_of(char letter) { return isupper((unsigned char)letter) ? letter - 'A' : letter - 'a' + 26; }

static const char *without_spaces(Graph *graph, const char *text) {
  char *packed = ARENA_ARRAY(graph->arena, char, strlen(text) + 1), *to = packed;
  for (; *text; text++)
    if (*text != ' ') *to++ = *text;
  return packed;
}

/* The number of letters; -1 after an error, for anything but letters and one ellipsis. */
static int count_letters(const Node *node, const char *text, int length, bool *dotted) {
  int letters = 0;
  *dotted = false;
  for (int i = 0; i < length; i++) {
    if (isalpha((unsigned char)text[i])) {
      letters++;
      continue;
    }
    if (*dotted || length - i < 3 || strncmp(text + i, DOTS, 3) != 0) {
      shape_error(node, "`equation` has \"%.*s\": letters and one \"...\" are allowed", length, text);
      return -1;
    }
    *dotted = true;
    i += 2;
  }
  return letters;
}

/* The text's labels; its ellipsis stands for `dots` axes. needs: count_letters. */
static EinsumTerm term_of(const char *text, int length, int dots) {
  EinsumTerm term = {0};
  for (int i = 0; i < length; i++) {
    if (text[i] != '.') {
      term.labels[term.n++] = label_of(text[i]);
      continue;
    }
    for (int k = MAX_RANK - dots; k < MAX_RANK; k++) term.labels[term.n++] = EINSUM_LETTERS + k;
    i += 2;
  }
  return term;
}

static bool fit_axis(Graph *graph, const Node *node, Einsum *einsum, int input, int axis) {
  const Dim *mine = node->inputs[input]->shape[axis], *one = dim_const(graph->dims, 1);
  const Dim **extent = &einsum->extents[einsum->terms[input].labels[axis]];
  if (!*extent || same_dim(*extent, one)) {
    *extent = mine;
    return true;
  }
  return same_dim(*extent, mine) || same_dim(mine, one) ||
         shape_error(node, "axis %d of %s has another extent than the same letter before: %s", axis,
                     shape_text(graph, node->inputs[input]), dim_text(graph, *extent));
}

static bool read_term(Graph *graph, const Node *node, Einsum *einsum, int input, const char *text, int length) {
  const Value *value = node->inputs[input];
  bool dotted;
  int letters = count_letters(node, text, length, &dotted);
  if (letters < 0) return false;
  if (dotted ? letters > value->rank : letters != value->rank)
    return shape_error(node, "`equation` has \"%.*s\" for input %d, %s", length, text, input, shape_text(graph, value));
  einsum->terms[input] = term_of(text, length, value->rank - letters);
  for (int axis = 0; axis < value->rank; axis++)
    if (!fit_axis(graph, node, einsum, input, axis)) return false;
  return true;
}

static bool read_terms(Graph *graph, const Node *node, Einsum *einsum, const char *text, int length) {
  for (int input = 0, at = 0; input < node->n_inputs; input++) {
    int end = at;
    while (end < length && text[end] != ',') end++;
    bool last = input == node->n_inputs - 1;
    if (last != (end == length))
      return shape_error(node, "`equation` has %s operands than inputs, %d", last ? "more" : "fewer", node->n_inputs);
    if (!read_term(graph, node, einsum, input, text + at, end - at)) return false;
    at = end + 1;
  }
  return true;
}

static int axes_of_dots(const Einsum *einsum) {
  int axes = 0;
  for (int label = EINSUM_LETTERS; label < EINSUM_LABELS; label++) axes += einsum->extents[label] != NULL;
  return axes;
}

static bool read_output(const Node *node, Einsum *einsum, const char *text) {
  bool dotted, seen[EINSUM_LABELS] = {false};
  int length = (int)strlen(text), letters = count_letters(node, text, length, &dotted);
  if (letters < 0) return false;
  if (letters + (dotted ? axes_of_dots(einsum) : 0) > MAX_RANK)
    return shape_unsupported(node, "its result has more than %d axes", MAX_RANK);
  einsum->output = term_of(text, length, axes_of_dots(einsum));
  for (int axis = 0; axis < einsum->output.n; axis++) {
    int label = einsum->output.labels[axis];
    if (!einsum->extents[label] || seen[label])
      return shape_error(node,
                         "`equation` has \"%s\" for the result: every letter must stand there once at most, and "
                         "among the operands",
                         text);
    seen[label] = true;
  }
  return true;
}

/* The implied output: the ellipsis, then the letters that occur once, sorted. */
static bool imply_output(const Node *node, Einsum *einsum) {
  int count[EINSUM_LABELS] = {0}, n = 0;
  for (int term = 0; term < einsum->n_terms; term++)
    for (int axis = 0; axis < einsum->terms[term].n; axis++) count[einsum->terms[term].labels[axis]]++;
  for (int label = EINSUM_LETTERS; label < EINSUM_LABELS; label++)
    if (count[label]) einsum->output.labels[n++] = label;
  for (int label = 0; label < EINSUM_LETTERS; label++) {
    if (count[label] != 1) continue;
    if (n == MAX_RANK) return shape_unsupported(node, "its result has more than %d axes", MAX_RANK);
    einsum->output.labels[n++] = label;
  }
  einsum->output.n = n;
  return true;
}

bool read_einsum(Graph *graph, const Node *node, Einsum *einsum) {
  const char *text = without_spaces(graph, node_string(node, ATTR_equation)), *arrow = strstr(text, ARROW);
  *einsum = (Einsum){.n_terms = node->n_inputs, .terms = ARENA_ARRAY(graph->arena, EinsumTerm, node->n_inputs)};
  if (!read_terms(graph, node, einsum, text, (int)(arrow ? arrow - text : (ptrdiff_t)strlen(text)))) return false;
  return arrow ? read_output(node, einsum, arrow + strlen(ARROW)) : imply_output(node, einsum);
}

/* A letter twice in an operand means its diagonal, which is gathered by constant indices. */
static bool check_diagonals(Graph *graph, const Node *node, const EinsumTerm *term, const Value *value) {
  for (int a = 0; a < term->n; a++)
    for (int b = a + 1; b < term->n; b++) {
      if (term->labels[a] != term->labels[b]) continue;
      if (!dim_is_const(value->shape[a]) || value->shape[a] != value->shape[b])
        return shape_unsupported(node, "axes %d and %d of %s are one letter; their extents must be known and the same",
                                 a, b, shape_text(graph, value));
    }
  return true;
}

bool shape_einsum(Graph *graph, Node *node) {
  Einsum einsum;
  const Dim *shape[MAX_RANK];
  if (!read_einsum(graph, node, &einsum)) return false;
  for (int input = 0; input < node->n_inputs; input++)
    if (!check_diagonals(graph, node, &einsum.terms[input], node->inputs[input])) return false;
  for (int axis = 0; axis < einsum.output.n; axis++) shape[axis] = einsum.extents[einsum.output.labels[axis]];
  return set_shape(graph, node, 0, einsum.output.n, shape);
}
