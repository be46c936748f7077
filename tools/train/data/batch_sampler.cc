#include "tools/train/data/batch_sampler.h"

#include <algorithm>
#include <bit>
#include <string>

#include "engine/base/status.h"
#include "kernels/counter_uniform.h"
#include "tools/train/data/example_random.h"

namespace hippodrome {
namespace {

// Enough for halves of a few bits to mix.
constexpr uint64_t kRounds = 8;

// A Feistel network on numbers of 2 * `half_bits` bits: a permutation whatever the round function.
uint64_t Feistel(uint64_t key, int half_bits, uint64_t x) {
  const uint64_t mask = (uint64_t{1} << half_bits) - 1;
  uint64_t left = x >> half_bits;
  uint64_t right = x & mask;
  for (uint64_t round = 0; round < kRounds; ++round) {
    const uint64_t mixed = MixBits(MixBits(key + round) + right) & mask;
    const uint64_t next = left ^ mixed;
    left = right;
    right = next;
  }
  return left << half_bits | right;
}

}  // namespace

int64_t Permuted(uint64_t key, int64_t n, int64_t i) {
  const int bits = std::bit_width(static_cast<uint64_t>(n - 1));
  const int half_bits = std::max(1, (bits + 1) / 2);
  // Walking on until the image is in range makes a permutation of [0, n): the cycle that leaves the
  // range at i comes back into it.
  uint64_t x = static_cast<uint64_t>(i);
  do {
    x = Feistel(key, half_bits, x);
  } while (x >= static_cast<uint64_t>(n));
  return static_cast<int64_t>(x);
}

absl::StatusOr<BatchSampler> BatchSampler::Create(int64_t examples, const BatchOptions& options) {
  if (options.batch_size < 1) {
    return InvalidArgument("the batch size is " + std::to_string(options.batch_size) +
                           ", expected at least 1");
  }
  int64_t batches = examples / options.batch_size;
  if (options.evaluation && examples % options.batch_size != 0) ++batches;
  if (batches > 0) return BatchSampler(examples, options, batches);
  return InvalidArgument("there are " + std::to_string(examples) +
                         " example(s), too few for a batch of " +
                         std::to_string(options.batch_size));
}

std::vector<int64_t> BatchSampler::Examples(int64_t index) const {
  const int64_t begin = index % batches_ * options_.batch_size;
  const int64_t end = std::min(begin + options_.batch_size, examples_);
  const uint64_t key = ExampleRandom(options_.seed, static_cast<uint64_t>(Epoch(index)), 0).Bits();
  std::vector<int64_t> examples;
  for (int64_t i = begin; i < end; ++i) {
    examples.push_back(options_.evaluation ? i : Permuted(key, examples_, i));
  }
  return examples;
}

}  // namespace hippodrome
