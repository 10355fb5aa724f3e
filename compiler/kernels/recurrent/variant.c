/* SPDX-License-Identifier: MIT */
#include "kernels/recurrent/variant.h"

#include <stdlib.h>
#include <string.h>

#include "support/text.h"

/* The keys in the order of the text form. */
typedef enum Key { KEY_INPUT, KEY_WORKERS, KEY_SAMPLE_WAYS, KEY_HIDE, KEY_DEPTH_BLOCK, KEY_CHUNK, KEYS } Key;

static const struct KeyRow {
  const char *name;
  int least, most;
} keys[KEYS] = {
    [KEY_INPUT] = {"input", INPUT_AHEAD, INPUT_WITH_STEP}, [KEY_WORKERS] = {"workers", 1, 1024},
    [KEY_SAMPLE_WAYS] = {"sample_ways", 1, 1024},          [KEY_HIDE] = {"hide", 0, 1},
    [KEY_DEPTH_BLOCK] = {"depth_block", 0, 1 << 20},       [KEY_CHUNK] = {"chunk", 0, 1 << 20},
};

static const char *const input_names[] = {[INPUT_AHEAD] = "ahead", [INPUT_WITH_STEP] = "step"};

static int get(const RecurrentVariant *v, Key key) {
  const int values[KEYS] = {(int)v->input, v->workers, v->sample_ways, v->hide, v->depth_block, v->chunk};
  return values[key];
}

static void set(RecurrentVariant *v, Key key, int value) {
  if (key == KEY_INPUT) v->input = (InputProduct)value;
  if (key == KEY_WORKERS) v->workers = value;
  if (key == KEY_SAMPLE_WAYS) v->sample_ways = value;
  if (key == KEY_HIDE) v->hide = value != 0;
  if (key == KEY_DEPTH_BLOCK) v->depth_block = value;
  if (key == KEY_CHUNK) v->chunk = value;
}

/* The value of `length` bytes, -1 if it is none of the key's. */
static int read_value(Key key, const char *text, size_t length) {
  for (int i = 0; key == KEY_INPUT && i <= INPUT_WITH_STEP; i++)
    if (strlen(input_names[i]) == length && !strncmp(text, input_names[i], length)) return i;
  if (key == KEY_INPUT || length == 0 || length > 7 || strspn(text, "0123456789") < length) return -1;
  int value = (int)strtol(text, NULL, 10);
  return value >= keys[key].least && value <= keys[key].most ? value : -1;
}

static bool set_part(RecurrentVariant *variant, const char *part, size_t length) {
  for (int key = 0; key < KEYS; key++) {
    size_t name = strlen(keys[key].name);
    if (length <= name || strncmp(part, keys[key].name, name) != 0 || part[name] != '=') continue;
    int value = read_value((Key)key, part + name + 1, length - name - 1);
    if (value >= 0) set(variant, (Key)key, value);
    return value >= 0;
  }
  return false;
}

bool variant_override(RecurrentVariant *variant, const char *text, const char **wrong) {
  for (const char *part = text;;) {
    size_t length = strcspn(part, ",");
    if (!set_part(variant, part, length)) {
      if (wrong) *wrong = part;
      return false;
    }
    if (!part[length]) return true;
    part += length + 1;
  }
}

const char *variant_text(Arena *arena, const RecurrentVariant *variant) {
  Text text = text_new(arena);
  text_add(&text, "%s=%s", keys[KEY_INPUT].name, input_names[variant->input]);
  for (int key = KEY_INPUT + 1; key < KEYS; key++) text_add(&text, ",%s=%d", keys[key].name, get(variant, (Key)key));
  return text.data;
}
