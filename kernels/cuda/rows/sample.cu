#include "kernels/cuda/rows/sample.h"

#include <bit>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/rows/sample.cuh"

namespace hippodrome::cuda {
namespace {

// Whole warps, with some 32 tokens to read for each thread.
int Threads(int64_t vocab) {
  const int64_t warps = (vocab + kWarp * kWarp - 1) / (kWarp * kWarp);
  return static_cast<int>(std::min<int64_t>(warps * kWarp, kMaxSampleThreads));
}

}  // namespace

void Sample(Device& device, Tensor logits, int64_t vocab, Tensor rows, Tensor tokens) {
  assert(vocab > 0 && vocab <= logits.cols && logits.dtype == DType::kF32);
  assert(rows.rows == logits.rows && rows.cols == kSamplingColumns);
  assert(tokens.cols == logits.rows);
  if (logits.rows == 0) return;
  const size_t kept_bytes = sizeof(SampleMemory) + static_cast<size_t>(vocab) * sizeof(float);
  const bool keeps_row = kept_bytes <= device.shared_bytes();
  const int bits = std::bit_width(static_cast<uint64_t>(vocab));
  const SampleArguments arguments = {
      .logits = static_cast<const float*>(logits.data),
      .stride = logits.stride,
      .vocab = static_cast<int32_t>(vocab),
      .rows = static_cast<const int32_t*>(rows.data),
      .row_stride = rows.stride,
      .tokens = static_cast<int32_t*>(tokens.data),
      .keeps_row = keeps_row,
      .unit = static_cast<float>(uint64_t{1} << (62 - bits)),
  };
  Launch(device, "sample", SampleRows,
         {.blocks = dim3(static_cast<unsigned>(logits.rows)),
          .threads = dim3(static_cast<unsigned>(Threads(vocab))),
          .shared_bytes = keeps_row ? kept_bytes : sizeof(SampleMemory)},
         arguments);
}

}  // namespace hippodrome::cuda
