/* SPDX-License-Identifier: MIT */
#include "load/onnx/unsupported.h"

#include <string.h>

#include "json/json.h"

enum { MAX_PLACES = 5 };

static UnsupportedThing *thing_of(Unsupported *unsupported, const char *what) {
  for (int i = 0; i < unsupported->count; i++)
    if (unsupported->things[i].follows == unsupported->follows && strcmp(unsupported->things[i].what, what) == 0)
      return &unsupported->things[i];
  if (unsupported->count == MAX_UNSUPPORTED) return NULL;
  UnsupportedThing *thing = &unsupported->things[unsupported->count++];
  *thing = (UnsupportedThing){.what = what, .places = text_new(unsupported->arena), .follows = unsupported->follows};
  return thing;
}

void unsupported_add(Unsupported *unsupported, const char *place, const char *format, ...) {
  Text what = text_new(unsupported->arena);
  va_list arguments;
  va_start(arguments, format);
  text_add_va(&what, format, arguments);
  va_end(arguments);
  UnsupportedThing *thing = thing_of(unsupported, what.data);
  if (!thing || thing->count++ >= MAX_PLACES) return;
  text_add(&thing->places, "%s\"%s\"", thing->count > 1 ? ", " : "", short_name(unsupported->arena, place));
}

static void tell(const Unsupported *unsupported, const char *file, bool follows) {
  for (int i = 0; i < unsupported->count; i++) {
    const UnsupportedThing *thing = &unsupported->things[i];
    if (thing->follows != follows) continue;
    error_at(LOCATION_FILE(file), EXIT_UNSUPPORTED, "%s is not supported (%d time%s: %s%s)", thing->what, thing->count,
             thing->count == 1 ? "" : "s", thing->places.data, thing->count > MAX_PLACES ? ", ..." : "");
  }
}

void unsupported_tell(const Unsupported *unsupported, const char *file) { tell(unsupported, file, false); }
void unsupported_tell_following(const Unsupported *unsupported, const char *file) { tell(unsupported, file, true); }
