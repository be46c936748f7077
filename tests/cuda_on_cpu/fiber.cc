#include "tests/cuda_on_cpu/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace cuda_on_cpu {
namespace {

[[maybe_unused]] constexpr size_t kPage = 4096;
// The context that the running one was switched to from.
Context* left;

}  // namespace

Stacks::Stacks(int count) : bytes_(static_cast<size_t>(count) * kStackBytes) {
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<char*>(memory);
#ifndef CUDA_ON_CPU_TSAN  // There the many small mappings would cost more than all the rest.
  // A stack that overflows ends the program.
  for (int i = 0; i < count; ++i) mprotect(Bottom(i), kPage, PROT_NONE);
#endif
}

Stacks::~Stacks() { munmap(memory_, bytes_); }

void Abandon([[maybe_unused]] char* stack) { SetForbidden(stack, kStackBytes, false); }

#ifdef __x86_64__

// cuda_on_cpu_switch(from, to) keeps the registers that a callee must keep and the stack pointer in
// *from, and goes on with those in `to`. cuda_on_cpu_enter is the first frame of a stack; the
// debugger and the sanitizers stop there.
asm(R"(
.text
.globl cuda_on_cpu_switch
.hidden cuda_on_cpu_switch
.type cuda_on_cpu_switch, @function
cuda_on_cpu_switch:
  .cfi_startproc
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .cfi_endproc
.size cuda_on_cpu_switch, .-cuda_on_cpu_switch
.globl cuda_on_cpu_enter
.hidden cuda_on_cpu_enter
.type cuda_on_cpu_enter, @function
cuda_on_cpu_enter:
  .cfi_startproc
  .cfi_undefined rip
  xorl %ebp, %ebp
  callq *%rbx
  ud2
  .cfi_endproc
.size cuda_on_cpu_enter, .-cuda_on_cpu_enter
)");
extern "C" void cuda_on_cpu_switch(void** from, void* to);
extern "C" void cuda_on_cpu_enter();

namespace {

UNTRACED void PrepareStack(Context& context, char* top, void (*entry)()) {
  // r15, r14, r13, r12, rbx, rbp and the return address; the stack is aligned to 16 bytes after it.
  void** frame = reinterpret_cast<void**>(top) - 9;
  frame[4] = reinterpret_cast<void*>(entry);
  frame[6] = reinterpret_cast<void*>(&cuda_on_cpu_enter);
  context.stack_pointer = frame;
}

UNTRACED void SwitchStacks(Context& from, Context& to) {
  cuda_on_cpu_switch(&from.stack_pointer, to.stack_pointer);
}

}  // namespace

#else

namespace {

void PrepareStack(Context& context, char* top, void (*entry)()) {
  getcontext(&context.state);
  context.state.uc_stack.ss_sp = const_cast<void*>(context.bottom);
  context.state.uc_stack.ss_size =
      static_cast<size_t>(top - static_cast<const char*>(context.bottom));
  makecontext(&context.state, entry, 0);
}

UNTRACED void SwitchStacks(Context& from, Context& to) { swapcontext(&from.state, &to.state); }

}  // namespace

#endif

UNTRACED void Prepare(Context& context, char* stack, int i, void (*entry)()) {
  context.bottom = stack;
  context.bytes = kStackBytes;
  context.fake_stack = nullptr;
  PrepareStack(context, stack + kStackBytes - (i % 64) * 192, entry);
}

UNTRACED void Arrived() {
#ifdef CUDA_ON_CPU_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &left->bottom, &left->bytes);
#endif
}

UNTRACED void Switch(Context& from, Context& to, [[maybe_unused]] bool last) {
  left = &from;
#ifdef CUDA_ON_CPU_ASAN
  __sanitizer_start_switch_fiber(last ? nullptr : &from.fake_stack, to.bottom, to.bytes);
#endif
#ifdef CUDA_ON_CPU_TSAN
  __tsan_switch_to_fiber(to.identity, __tsan_switch_to_fiber_no_sync);
#endif
  SwitchStacks(from, to);
#ifdef CUDA_ON_CPU_ASAN
  __sanitizer_finish_switch_fiber(from.fake_stack, &left->bottom, &left->bytes);
#endif
}

}  // namespace cuda_on_cpu
