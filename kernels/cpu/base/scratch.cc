#include "kernels/cpu/base/scratch.h"

#include <array>
#include <memory>

#include "kernels/cpu/base/memory.h"

namespace hippodrome {
namespace {

struct Block {
  std::shared_ptr<void> memory;
  size_t bytes = 0;
};

thread_local std::array<Block, kScratchUses> blocks;

}  // namespace

void* ThreadScratch(ScratchUse use, size_t bytes) {
  Block& block = blocks[static_cast<size_t>(use)];
  if (block.bytes < bytes || block.memory == nullptr) {
    block.memory.reset();  // first, so that the two never coexist
    block.memory = AllocateZeroed(bytes);
    block.bytes = bytes;
  }
  return block.memory.get();
}

}  // namespace hippodrome
