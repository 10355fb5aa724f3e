/* SPDX-License-Identifier: MIT */
/*
 * The registers that a function must keep go to the stack, and the other stack's come back: some nanoseconds. The
 * floating-point mode is no part of it: it is the thread's (steps.c). Sanitizers are told, because they know each
 * thread's stack.
 */
#include "fiber.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "indirect.h"

#ifdef __has_feature
#define FIBER_ASAN __has_feature(address_sanitizer)
#define FIBER_TSAN __has_feature(thread_sanitizer)
#elif defined __SANITIZE_ADDRESS__
#define FIBER_ASAN 1
#define FIBER_TSAN 0
#elif defined __SANITIZE_THREAD__
#define FIBER_ASAN 0
#define FIBER_TSAN 1
#else
#define FIBER_ASAN 0
#define FIBER_TSAN 0
#endif

#if FIBER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if FIBER_TSAN
#include <sanitizer/tsan_interface.h>
#endif

enum { FIBER_GUARD = 1 << 16 }; /* below the stack, which nothing may touch: a page of the largest */

struct Fiber {
  void *own, *other; /* stack pointers: of the fiber while it rests, of who resumed it while it runs */
  void (*main)(void *arg);
  void *arg;
  bool running;
  unsigned char *memory; /* [FIBER_GUARD + bytes] */
  size_t bytes;          /* of the stack: whole pages of the largest */
#if FIBER_ASAN
  void *own_fake, *other_fake; /* its fake stacks */
  const void *other_stack;
  size_t other_bytes;
#endif
#if FIBER_TSAN
  void *own_id, *other_id;
#endif
};

#if HAS_FIBERS

#define fiber_switch RNNCC_GLOBAL(fiber_switch)
#define SWITCH RNNCC_GLOBAL_TEXT(fiber_switch)

/* Stores the stack pointer in *from, and goes on where `to` was stored: there this call returns, or a fresh fiber's
 * first function begins, with `fiber` as its argument. */
__attribute__((visibility("hidden"))) void fiber_switch(void **from, void *to, Fiber *fiber);

#if defined __x86_64__

enum { FRAME_WORDS = 8 /* and a return address of 0 above, as after a call */, FRAME_RETURN = 6 };
__asm__(".text\n.globl " SWITCH "\n.hidden " SWITCH "\n.type " SWITCH ",@function\n.p2align 4\n" SWITCH ":\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  movq %rdx, %rdi\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n"
        ".size " SWITCH ", .-" SWITCH "\n");

#elif defined __aarch64__

enum { FRAME_WORDS = 20, FRAME_RETURN = 11 };
__asm__(".text\n.globl " SWITCH "\n.hidden " SWITCH "\n.type " SWITCH ",%function\n.p2align 4\n" SWITCH ":\n"
        "  sub sp, sp, #160\n"
        "  stp x19, x20, [sp]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n  stp x25, x26, [sp, #48]\n"
        "  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
        "  mov x9, sp\n  str x9, [x0]\n"
        "  mov sp, x1\n"
        "  mov x0, x2\n"
        "  ldp x19, x20, [sp]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n  ldp x25, x26, [sp, #48]\n"
        "  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
        "  add sp, sp, #160\n"
        "  ret\n"
        ".size " SWITCH ", .-" SWITCH "\n");

#else /* RISC-V: a word is XLEN bits; fs0 to fs11 are kept where there are doubles in registers */

enum { FRAME_WORDS = 26, FRAME_RETURN = 0 };
#define EACH_KEPT(move, fmove)                                                                                         \
  move(ra, 0) move(s0, 1) move(s1, 2) move(s2, 3) move(s3, 4) move(s4, 5) move(s5, 6) move(s6, 7) move(s7, 8)          \
      move(s8, 9) move(s9, 10) move(s10, 11) move(s11, 12) fmove(fs0, 13) fmove(fs1, 14) fmove(fs2, 15) fmove(fs3, 16) \
          fmove(fs4, 17) fmove(fs5, 18) fmove(fs6, 19) fmove(fs7, 20) fmove(fs8, 21) fmove(fs9, 22) fmove(fs10, 23)    \
              fmove(fs11, 24)
#define STORE(name, at) "  sd " #name ", 8*" #at "(sp)\n"
#define LOAD(name, at) "  ld " #name ", 8*" #at "(sp)\n"
#ifdef __riscv_float_abi_double
#define STORE_DOUBLE(name, at) "  fsd " #name ", 8*" #at "(sp)\n"
#define LOAD_DOUBLE(name, at) "  fld " #name ", 8*" #at "(sp)\n"
#else
#define STORE_DOUBLE(name, at)
#define LOAD_DOUBLE(name, at)
#endif
__asm__(".text\n.globl " SWITCH "\n.hidden " SWITCH "\n.type " SWITCH ",@function\n.p2align 2\n" SWITCH ":\n"
        "  addi sp, sp, -208\n" EACH_KEPT(
            STORE, STORE_DOUBLE) "  sd sp, 0(a0)\n"
                                 "  mv sp, a1\n"
                                 "  mv a0, a2\n" EACH_KEPT(LOAD, LOAD_DOUBLE) "  addi sp, sp, 208\n"
                                                                              "  ret\n"
                                                                              ".size " SWITCH ", .-" SWITCH "\n");

#endif

static unsigned char *stack_begin(const Fiber *fiber) { return fiber->memory + FIBER_GUARD; }

/* On the fiber's stack, when it comes there. */
static void arrived_inside(Fiber *fiber) {
#if FIBER_ASAN
  __sanitizer_finish_switch_fiber(fiber->own_fake, &fiber->other_stack, &fiber->other_bytes);
#endif
  (void)fiber;
}

void fiber_yield(Fiber *fiber) {
#if FIBER_ASAN
  __sanitizer_start_switch_fiber(&fiber->own_fake, fiber->other_stack, fiber->other_bytes);
#endif
#if FIBER_TSAN
  __tsan_switch_to_fiber(fiber->other_id, 0);
#endif
  fiber_switch(&fiber->own, fiber->other, NULL);
  arrived_inside(fiber);
}

/* The first function on the stack, which never returns: there is nothing below. */
static void fiber_first(Fiber *fiber) {
  arrived_inside(fiber);
  for (;;) {
    indirect_main(fiber->main, fiber->arg);
    fiber->running = false;
    fiber_yield(fiber);
  }
}

void fiber_resume(Fiber *fiber) {
#if FIBER_ASAN
  __sanitizer_start_switch_fiber(&fiber->other_fake, stack_begin(fiber), fiber->bytes);
#endif
#if FIBER_TSAN
  fiber->other_id = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(fiber->own_id, 0);
#endif
  fiber_switch(&fiber->other, fiber->own, fiber);
#if FIBER_ASAN
  __sanitizer_finish_switch_fiber(fiber->other_fake, NULL, NULL);
#endif
}

bool fiber_runs(const Fiber *fiber) { return fiber->running; }

void fiber_start(Fiber *fiber, void (*main)(void *arg), void *arg) {
  fiber->main = main;
  fiber->arg = arg;
  fiber->running = true;
}

/* What fiber_switch() finds on a fresh stack: registers of 0, which a debugger takes for the stack's end, and where to
 * go on. The memory is zero. */
static void write_first_frame(Fiber *fiber) {
  uint64_t *frame = (uint64_t *)(stack_begin(fiber) + fiber->bytes) - FRAME_WORDS;
  frame[FRAME_RETURN] = (uintptr_t)fiber_first;
  fiber->own = frame;
}

Fiber *fiber_create(size_t bytes) {
  bytes = (bytes + FIBER_GUARD - 1) / FIBER_GUARD * FIBER_GUARD;
  Fiber *fiber = calloc(1, sizeof *fiber);
  if (!fiber) return NULL;
  void *memory = mmap(NULL, FIBER_GUARD + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    free(fiber);
    return NULL;
  }
  mprotect(memory, FIBER_GUARD, PROT_NONE);
  fiber->memory = memory;
  fiber->bytes = bytes;
  write_first_frame(fiber);
#if FIBER_TSAN
  fiber->own_id = __tsan_create_fiber(0);
#endif
  return fiber;
}

void fiber_destroy(Fiber *fiber) {
  if (!fiber) return;
#if FIBER_TSAN
  __tsan_destroy_fiber(fiber->own_id);
#endif
  munmap(fiber->memory, FIBER_GUARD + fiber->bytes);
  free(fiber);
}

#else

Fiber *fiber_create(size_t bytes) { return (void)bytes, NULL; }
void fiber_destroy(Fiber *fiber) { (void)fiber; }
void fiber_start(Fiber *fiber, void (*main)(void *arg), void *arg) { (void)fiber, (void)main, (void)arg; }
void fiber_resume(Fiber *fiber) { (void)fiber; }
bool fiber_runs(const Fiber *fiber) { return (void)fiber, false; }
void fiber_yield(Fiber *fiber) { (void)fiber; }

#endif
