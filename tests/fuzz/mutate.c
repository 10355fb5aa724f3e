/* SPDX-License-Identifier: MIT */
/* Changes to a model's parts, as someone would make them who knows what a model is, and wishes it ill. */
#include <math.h>
#include <string.h>

#include "ir/op.h"
#include "parts.h"

enum { MOST_PLACES = 1 << 15, MOST_STEPS = 6, LONG_NAME = 3000, MOST_LENGTHENED = 40, N_TYPES = 26 };

typedef struct Place {
  Part *parent;
  int index;
} Place;

typedef struct Mutation {
  Arena *arena;
  Part *root;
  const Part *other; /* NULL: none */
  uint64_t state;    /* of the random numbers */
  Place *places;     /* of all parts but the root */
  int n_places;
} Mutation;

/* SplitMix64 (Steele, Lea and Flood, 2014). */
static uint64_t draw(Mutation *m) {
  uint64_t z = m->state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static int below(Mutation *m, int end) { return (int)(draw(m) % (uint64_t)end); }

static bool one_in(Mutation *m, int n) { return below(m, n) == 0; }

static Part *part_at(Place place) { return place.parent->parts[place.index]; }

static void list_places(Mutation *m, Part *parent) {
  for (int i = 0; i < parent->n_parts && m->n_places < MOST_PLACES; i++) {
    m->places[m->n_places++] = (Place){parent, i};
    list_places(m, parent->parts[i]);
  }
}

/* Elements of weights are most of the parts, and say little: a part is as likely as its role is rare. */
static Place any_place(Mutation *m) {
  Place place = m->places[below(m, m->n_places)];
  for (int tries = 0; tries < 8; tries++) {
    Place other = m->places[below(m, m->n_places)];
    if (part_at(other)->role != part_at(place)->role && one_in(m, 2)) place = other;
    if (part_at(place)->kind == PART_GROUP && one_in(m, 4)) break;
  }
  return place;
}

/* A place whose part has that role. */
static Place place_like(Mutation *m, uint64_t role, Place otherwise) {
  int start = below(m, m->n_places);
  for (int k = 0; k < m->n_places; k++) {
    Place place = m->places[(start + k) % m->n_places];
    bool same = place.parent == otherwise.parent && place.index == otherwise.index;
    if (part_at(place)->role == role && !same) return place;
  }
  return otherwise;
}

static const Part *find_role(const Part *parent, uint64_t role, int *skip) {
  for (int i = 0; i < parent->n_parts; i++) {
    const Part *part = parent->parts[i];
    if (part->role == role && (*skip)-- == 0) return part;
    const Part *inside = find_role(part, role, skip);
    if (inside) return inside;
  }
  return NULL;
}

/* A part for a place of that role, of this model or the other one; itself if there is no other. */
static const Part *donor(Mutation *m, Place place) {
  uint64_t role = part_at(place)->role;
  int skip = below(m, 8);
  const Part *found = m->other && one_in(m, 2) ? find_role(m->other, role, &skip) : NULL;
  return found ? found : part_at(place_like(m, role, place));
}

/* ---- values ---- */

static int64_t odd_number(Mutation *m, int64_t before) {
  static const int64_t odd[] = {0,
                                1,
                                -1,
                                2,
                                3,
                                7,
                                8,
                                9,
                                16,
                                64,
                                65,
                                127,
                                255,
                                1 << 16,
                                INT32_MAX,
                                INT32_MIN,
                                1ll << 31,
                                1ll << 32,
                                1ll << 40,
                                1ll << 62,
                                INT64_MAX,
                                INT64_MIN,
                                INT64_MIN + 1,
                                1000000};
  switch (below(m, 6)) {
  case 0:
    return (int64_t)((uint64_t)before + 1);
  case 1:
    return (int64_t)((uint64_t)before - 1);
  case 2:
    return (int64_t)((uint64_t)before * 2);
  case 3:
    return (int64_t)(0 - (uint64_t)before);
  case 4:
    return below(m, N_TYPES);
  default:
    return odd[below(m, sizeof odd / sizeof *odd)];
  }
}

static double odd_float(Mutation *m, double before) {
  const double odd[] = {0,     -0.0,  1,        -1,        0.5, 1e-45,        1e-38, 3e38,
                        -3e38, 1e300, HUGE_VAL, -HUGE_VAL, NAN, 2147483648.0, 1e19};
  return one_in(m, 4) ? before * -2 : odd[below(m, sizeof odd / sizeof *odd)];
}

static int count_ops(void) {
  int count = 0;
  while (op_at(count)) count++;
  return count;
}

static FileBytes long_name(Mutation *m) {
  char *name = arena_alloc(m->arena, LONG_NAME);
  memset(name, 'n', LONG_NAME);
  return (FileBytes){(const uint8_t *)name, LONG_NAME};
}

static FileBytes odd_text(Mutation *m, FileBytes before) {
  static const char *const odd[] = {"",   "x",   "*/",         "%n%s",          "same", "SAME_UPPER", "reverse", "f16",
                                    "u8", "i64", "ai.onnx.ml", "com.microsoft", "T",    "loc",        "linear"};
  switch (below(m, 5)) {
  case 0:
    return bytes_of_text(op_at(below(m, count_ops()))->name);
  case 1:
    return bytes_of_text(odd[below(m, sizeof odd / sizeof *odd)]);
  case 2:
    return one_in(m, 8) ? long_name(m) : bytes_of_text("");
  case 3:
    return (FileBytes){before.data, before.size / 2};
  default: { /* another text of the model */
    for (int tries = 0; tries < 32; tries++) {
      const Part *part = part_at(m->places[below(m, m->n_places)]);
      if (part->kind == PART_TEXT && part->bytes.data != before.data) return part->bytes;
    }
    return before;
  }
  }
}

/* Of another length, or with a byte changed. */
static FileBytes odd_bytes(Mutation *m, FileBytes before) {
  if (!before.size || one_in(m, 4)) return (FileBytes){before.data, before.size / 2};
  uint8_t *bytes = arena_copy(m->arena, before.data, before.size);
  bytes[draw(m) % before.size] = one_in(m, 2) ? (uint8_t)draw(m) : 0xff;
  return (FileBytes){bytes, before.size};
}

static void change_value(Mutation *m, Part *part) {
  switch (part->kind) {
  case PART_NUMBER:
    part->number = odd_number(m, part->number);
    break;
  case PART_FLOAT:
    part->real = odd_float(m, part->real);
    break;
  case PART_TEXT:
    part->bytes = odd_text(m, part->bytes);
    break;
  case PART_LITERAL:
    part->bytes = bytes_of_text(one_in(m, 3) ? "null" : part->bytes.size == 4 ? "false" : "true");
    break;
  case PART_BYTES:
    part->bytes = odd_bytes(m, part->bytes);
    break;
  case PART_LIST:
  case PART_GROUP:
    if (part->n_parts) part_remove(part, below(m, part->n_parts));
    break;
  }
}

/* ---- changes ---- */

static void drop(Mutation *m, Place place) {
  (void)m;
  part_remove(place.parent, place.index);
}

static void duplicate(Mutation *m, Place place) {
  int times = one_in(m, 8) ? 1 + below(m, MOST_LENGTHENED) : 1;
  for (int i = 0; i < times; i++)
    part_insert(m->arena, place.parent, below(m, place.parent->n_parts + 1), part_copy(m->arena, part_at(place)));
}

static void swap(Mutation *m, Place place) {
  Part *one = part_at(place), *other = part_at(place_like(m, one->role, place));
  Part here = *one, there = *other;
  const char *key = here.key;
  here.key = there.key;
  there.key = key;
  /* A part that holds the other would hold itself. */
  *one = *part_copy(m->arena, &there);
  *other = *part_copy(m->arena, &here);
}

static void replace(Mutation *m, Place place) {
  Part *copy = part_copy(m->arena, donor(m, place)); /* which may hold this place: so bodies come into bodies */
  copy->key = part_at(place)->key;
  place.parent->parts[place.index] = copy;
}

static void insert(Mutation *m, Place place) {
  Part *copy = part_copy(m->arena, donor(m, place));
  part_insert(m->arena, place.parent, below(m, place.parent->n_parts + 1), copy);
}

static void move(Mutation *m, Place place) {
  Part *part = part_at(place);
  part_remove(place.parent, place.index);
  part_insert(m->arena, place.parent, below(m, place.parent->n_parts + 1), part);
}

static void change(Mutation *m, Place place) { change_value(m, part_at(place)); }

/* The same number wherever it is: an extent of the input, of weights, and of what is made of them. */
static void resize(Mutation *m, Place place) {
  if (part_at(place)->kind != PART_NUMBER) {
    change(m, place);
    return;
  }
  int64_t before = part_at(place)->number, after = one_in(m, 4) ? odd_number(m, before) : below(m, 40);
  bool one_role = one_in(m, 2);
  uint64_t role = part_at(place)->role;
  for (int i = 0; i < m->n_places; i++) {
    Part *part = part_at(m->places[i]);
    if (part->kind == PART_NUMBER && part->number == before && (!one_role || part->role == role)) part->number = after;
  }
}

/* JSON: a value of another kind. ONNX: the value in another field. */
static void retype(Mutation *m, Place place) {
  Part *part = part_at(place);
  if (part->field) {
    part->field = onnx_other_field(part, place.parent, draw(m));
    return;
  }
  static const PartKind kinds[] = {PART_NUMBER, PART_FLOAT, PART_TEXT, PART_LITERAL, PART_LIST, PART_GROUP};
  PartKind kind = kinds[below(m, sizeof kinds / sizeof *kinds)];
  if (part->kind != PART_LIST && part->kind != PART_GROUP && kind == PART_LIST) { /* a list of that value */
    Part *inside = part_copy(m->arena, part);
    *part = (Part){.kind = PART_LIST, .role = part->role, .key = part->key};
    part_insert(m->arena, part, 0, inside);
    return;
  }
  part->kind = kind;
  if (kind == PART_TEXT || kind == PART_LITERAL) part->bytes = bytes_of_text(kind == PART_TEXT ? "" : "null");
}

static void (*const changes[])(Mutation *, Place) = {drop,   duplicate, swap,   replace, insert, move,
                                                     change, change,    change, resize,  resize, retype};

void mutate(Arena *arena, Part *root, const Part *other, uint64_t seed) {
  Mutation m = {.arena = arena, .root = root, .other = other, .state = seed};
  m.places = ARENA_ARRAY(arena, Place, MOST_PLACES);
  int steps = 1 + below(&m, MOST_STEPS);
  for (int step = 0; step < steps; step++) {
    m.n_places = 0;
    list_places(&m, root);
    if (!m.n_places) return;
    changes[below(&m, sizeof changes / sizeof *changes)](&m, any_place(&m));
  }
  if (root->role && root->parts[0]->field && !one_in(&m, 4)) onnx_fill_tensors(arena, root);
}
