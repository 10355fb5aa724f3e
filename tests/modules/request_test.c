/* SPDX-License-Identifier: MIT */
/* `rnnrun measure` refuses bytes that are not a request, with a reason; it neither crashes nor keeps anything open.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "open_files.h"
#include "rnnrun/request.h"

enum { MAX_BYTES = 4096, CASES = 2000 };

static const char WHOLE[] = "rnncc-measure 1\n"
                            "module 7\nnode n0\nthreads 2\nleast_runs 3\nruns 9\nseconds 0.5\nprecision 0.01\n"
                            "give_up_us 1e3\nlimit 20\nevict 65536\nseed 7\noutputs 1\ninput 3\ninput 0\nend\n"
                            "\x7f"
                            "ELF\0\n\xff"
                            "abc"
                            "rnncc-measure-end\n";

/* splitmix64 */
static uint64_t state;
static uint64_t below(uint64_t limit) {
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (z ^ z >> 31) % limit;
}

static int read_bytes(char *bytes, size_t count, Request *request) {
  FILE *stream = fmemopen(bytes, count, "rb");
  assert_non_null(stream);
  int good = request_read(stream, request);
  fclose(stream);
  return good;
}

static void a_request_is_read_as_it_stands(void **unused) {
  (void)unused;
  char bytes[sizeof WHOLE], module[8];
  Request request;
  memcpy(bytes, WHOLE, sizeof WHOLE);
  assert_int_equal(read_bytes(bytes, sizeof WHOLE - 1, &request), 1);
  assert_int_equal(pread(request.module, module, sizeof module, 0), 7);
  assert_memory_equal(module,
                      "\x7f"
                      "ELF\0\n\xff",
                      7);
  assert_string_equal(request.node, "n0");
  int64_t whole[] = {request.threads, request.least_runs, request.runs, request.evict, request.seed, request.outputs};
  int64_t expected[] = {2, 3, 9, 65536, 7, 1};
  assert_memory_equal(whole, expected, sizeof whole);
  assert_true(request.seconds == 0.5 && request.precision == 0.01 && request.give_up_us == 1e3 && request.limit == 20);
  assert_int_equal(request.n_inputs, 2);
  assert_memory_equal(request.inputs[0].data, "abc", 3);
  assert_int_equal(request.inputs[1].bytes, 0);
  request_free(&request);
}

/* A piece of the request is removed, doubled, or replaced by other bytes. */
static size_t mutate(char *bytes, size_t count) {
  size_t at = below(count), length = 1 + below(16);
  if (at + length > count) length = count - at;
  switch (below(4)) {
  case 0:
    bytes[at] ^= (char)(1 << below(8));
    return count;
  case 1:
    memmove(bytes + at, bytes + at + length, count - at - length);
    return count - length;
  case 2:
    memmove(bytes + at + length, bytes + at, count - at);
    return count + length;
  default:
    for (size_t i = 0; i < length; i++) bytes[at + i] = (char)below(256);
    return count;
  }
}

static size_t make_case(char bytes[MAX_BYTES]) {
  if (below(4) == 0) {
    size_t count = 1 + below(MAX_BYTES - 1);
    for (size_t i = 0; i < count; i++) bytes[i] = (char)below(256);
    return count;
  }
  size_t count = sizeof WHOLE - 1;
  memcpy(bytes, WHOLE, count);
  for (uint64_t changes = 1 + below(4); changes > 0 && count > 0; changes--) count = mutate(bytes, count);
  return count > 0 ? count : 1;
}

/* A request that is accepted nevertheless has the lengths that it announces. */
static void any_bytes_are_read_or_refused_with_a_reason(void **unused) {
  (void)unused;
  static char bytes[MAX_BYTES];
  int before = open_files(), taken = 0;
  for (int i = 0; i < CASES; i++) {
    Request request;
    size_t count = make_case(bytes);
    int good = read_bytes(bytes, count, &request);
    if (good) assert_int_equal(lseek(request.module, 0, SEEK_END), request.module_bytes);
    if (!good) assert_true(*request.wrong);
    taken += good;
    request_free(&request);
  }
  assert_in_range(taken, CASES / 100,
                  CASES / 2); /* if a digit or a byte of the module changes, it is still a request */
  assert_int_equal(open_files(), before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_request_is_read_as_it_stands),
      cmocka_unit_test(any_bytes_are_read_or_refused_with_a_reason),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
