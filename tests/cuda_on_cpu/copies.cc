// Asynchronous copies. They arrive as late as the program allows, so that a wait that is missing is
// seen; in shuffled order some arrive at once, so that a copy into memory in use is seen too.
#include <cstring>

#include "tests/cuda_on_cpu/block.h"
#include "tests/cuda_on_cpu/trace.h"

namespace cuda_on_cpu {
namespace {

UNTRACED bool ArrivesAtOnce() {
  return CurrentOrder() == ThreadOrder::kShuffled && RandomNumber() % 2 == 0;
}

void Arrive(const PendingCopy& copy) {
  if (copy.from == nullptr) {
    std::memset(copy.to, 0, 16);
  } else {
    std::memcpy(copy.to, copy.from, 16);
  }
}

bool IsAligned(const void* address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; }

}  // namespace

void CopyAsync16(void* shared, const void* from, bool valid) {
  Thread& thread = Block::Running().thread();
  if (!IsAligned(shared) || (valid && !IsAligned(from))) {
    Block::Running().Fail("copies between addresses that are not aligned to 16 bytes");
  }
  const PendingCopy copy = {shared, valid ? from : nullptr};
  // It may be under way from now on.
  TraceWrite(shared, 16);
  TraceAccess(shared, 16, true, __builtin_return_address(0));
  if (valid) {
    TraceRead(from, 16);
    TraceAccess(from, 16, false, __builtin_return_address(0));
  }
  if (ArrivesAtOnce()) {
    Arrive(copy);
  } else {
    thread.copies.push_back(copy);
    ++thread.open;
  }
}

void CommitCopies() {
  Thread& thread = Block::Running().thread();
  thread.groups.push_back(thread.open);
  thread.open = 0;
}

void WaitForCopies(int pending) {
  Thread& thread = Block::Running().thread();
  size_t done = 0;
  while (thread.groups.size() > static_cast<size_t>(pending)) {
    for (size_t i = 0; i < thread.groups.front(); ++i) Arrive(thread.copies[done++]);
    thread.groups.erase(thread.groups.begin());
  }
  thread.copies.erase(thread.copies.begin(),
                      thread.copies.begin() + static_cast<std::ptrdiff_t>(done));
}

}  // namespace cuda_on_cpu
