/* SPDX-License-Identifier: MIT */
#include "reroll/pattern.h"

#include <string.h>

#include "ir/op.h"

static const struct LetterRow {
  const char *letters;
  OpKind op; /* whose output these letters are */
} letter_rows[] = {{"fiorz", OP_Sigmoid}, {"gny", OP_Tanh}};

/* Nodes that an exporter adds to compute the cell belong to the cell; nodes that store its states do not. */
static const char state_letters[] = "ch";

static const struct OperatorRow {
  char sign;
  OpKind ops[2];
  bool commutes;
} operators[] = {{'+', {OP_Add, OP_Sum}, true}, {'-', {OP_Sub, OP_Sub}, false}, {'*', {OP_Mul, OP_Mul}, true}};

Strip bound(const Bindings *bindings, char letter) { return bindings->letters[letter - 'a']; }

/* ---- the text ---- */

/* [begin, end) of a pattern; no spaces at either end. */
typedef struct Formula {
  const char *begin, *end;
} Formula;

static Formula trimmed(const char *begin, const char *end) {
  while (begin < end && *begin == ' ') begin++;
  while (begin < end && end[-1] == ' ') end--;
  return (Formula){begin, end};
}

/* The last of `signs` outside of parentheses: what is done last. NULL if there is none. */
static const char *last_sign(Formula formula, const char *signs) {
  int depth = 0;
  for (const char *c = formula.end; c-- > formula.begin;) {
    depth += (*c == ')') - (*c == '(');
    if (depth == 0 && strchr(signs, *c)) return c;
  }
  return NULL;
}

static const char *main_sign(Formula formula) {
  const char *sign = last_sign(formula, "+-");
  return sign ? sign : last_sign(formula, "*");
}

static Formula without_parentheses(Formula formula) {
  while (*formula.begin == '(' && !main_sign(formula)) formula = trimmed(formula.begin + 1, formula.end - 1);
  return formula;
}

/* ---- matching ---- */

typedef struct Match {
  Graph *graph;
  Trail *trail;
  Bindings *bindings;
} Match;

static bool match(Match *m, Formula formula, Strip strip);

static bool all_ones(const Strip *strip) {
  const float *numbers = strip_numbers(strip);
  for (int64_t i = 0; numbers && i < strip->count; i++)
    if (numbers[i] != 1) return false;
  return numbers != NULL;
}

static bool is_made_by(const Strip *strip, OpKind op) { return is_op(strip->value->producer, op); }

static bool fits_letter(char letter, const Strip *strip) {
  for (size_t i = 0; i < sizeof letter_rows / sizeof *letter_rows; i++)
    if (strchr(letter_rows[i].letters, letter)) return is_made_by(strip, letter_rows[i].op);
  return true;
}

/* Exporters write a new constant of zeros for each reader. */
static bool is_same(const Strip *a, const Strip *b) {
  return strip_same(a, b) || (a->count == b->count && strip_is_zero(a) && strip_is_zero(b));
}

static bool match_letter(Match *m, char letter, Strip strip) {
  Strip *known = &m->bindings->letters[letter - 'a'];
  int mark = m->trail->n;
  strip = strip_origin(m->graph, strip, strchr(state_letters, letter) ? NULL : m->trail);
  bool fits = known->value ? is_same(known, &strip) : fits_letter(letter, &strip);
  if (fits)
    *known = strip;
  else
    m->trail->n = mark;
  return fits;
}

static bool match_both(Match *m, const Formula sides[2], const Strip *first, const Strip *second) {
  Bindings saved = *m->bindings;
  int mark = m->trail->n;
  if (match(m, sides[0], *first) && match(m, sides[1], *second)) return true;
  *m->bindings = saved;
  m->trail->n = mark;
  return false;
}

static const struct OperatorRow *operator_of(char sign) {
  const struct OperatorRow *row = operators;
  while (row->sign != sign) row++;
  return row;
}

static bool match_operator(Match *m, Formula formula, const char *sign, Strip strip) {
  const struct OperatorRow *row = operator_of(*sign);
  const Formula sides[] = {trimmed(formula.begin, sign), trimmed(sign + 1, formula.end)};
  int mark = m->trail->n;
  strip = strip_origin(m->graph, strip, m->trail);
  Node *node = strip.value->producer;
  Strip a, b;
  if (node && node->n_inputs == 2 && (is_made_by(&strip, row->ops[0]) || is_made_by(&strip, row->ops[1])) &&
      strip_operand(m->graph, &strip, node->inputs[0], &a) && strip_operand(m->graph, &strip, node->inputs[1], &b)) {
    strip_passed(&strip, m->trail);
    if (match_both(m, sides, &a, &b) || (row->commutes && match_both(m, sides, &b, &a))) return true;
  }
  m->trail->n = mark;
  return false;
}

static bool match(Match *m, Formula formula, Strip strip) {
  formula = without_parentheses(formula);
  const char *sign = main_sign(formula);
  if (sign) return match_operator(m, formula, sign, strip);
  if (*formula.begin == '1') return all_ones(&strip);
  return match_letter(m, *formula.begin, strip);
}

bool pattern_match(Graph *graph, Trail *trail, const char *pattern, Strip strip, Bindings *bindings) {
  Match m = {graph, trail, bindings};
  Bindings saved = *bindings;
  int mark = trail->n;
  if (match(&m, trimmed(pattern, pattern + strlen(pattern)), strip)) return true;
  *bindings = saved;
  trail->n = mark;
  return false;
}
