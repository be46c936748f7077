#include "kernels/cuda/gemm/packed_weights.h"

#include <algorithm>
#include <cassert>
#include <vector>

namespace hippodrome::cuda {
namespace {

// Elements that are converted before they are uploaded.
constexpr int64_t kBufferElements = 1 << 20;

struct Half {
  uint16_t bits;
};

float Widen(float x) { return x; }
float Widen(BF16 x) { return ToFloat(x); }
float Widen(Half x) { return HalfToFloat(x.bits); }

void Narrow(float x, float& y) { y = x; }
void Narrow(float x, BF16& y) { y = ToBF16(x); }

// Uploads `count` elements of another type than the weights'.
template <typename From, typename To>
void UploadConverted(Device& device, const void* data, int64_t count, void* to) {
  const From* from = static_cast<const From*>(data);
  std::vector<To> buffer(static_cast<size_t>(std::min(count, kBufferElements)));
  for (int64_t begin = 0; begin < count; begin += kBufferElements) {
    const int64_t n = std::min(kBufferElements, count - begin);
    for (int64_t i = 0; i < n; ++i) {
      Narrow(Widen(from[begin + i]), buffer[static_cast<size_t>(i)]);
    }
    CopyToDevice(device, buffer.data(), static_cast<To*>(to) + begin,
                 static_cast<size_t>(n) * sizeof(To));
  }
}

template <typename To>
void UploadConverted(Device& device, const HostMatrix& part, void* to) {
  const int64_t count = part.rows * part.cols;
  switch (part.dtype) {
    case DType::kBF16:
      return UploadConverted<BF16, To>(device, part.data, count, to);
    case DType::kF16:
      return UploadConverted<Half, To>(device, part.data, count, to);
    default:
      return UploadConverted<float, To>(device, part.data, count, to);
  }
}

void UploadPart(Device& device, const HostMatrix& part, DType dtype, void* to) {
  if (part.dtype == dtype) {
    CopyToDevice(device, part.data, to, static_cast<size_t>(part.rows * part.cols) * SizeOf(dtype));
  } else if (dtype == DType::kF32) {
    UploadConverted<float>(device, part, to);
  } else {
    UploadConverted<BF16>(device, part, to);
  }
}

}  // namespace

PackedWeights::PackedWeights(Device& device, int64_t out, int64_t in, DType dtype)
    : out_(out), in_(in), dtype_(dtype) {
  assert(out > 0 && in > 0);
  assert(dtype == DType::kF32 || dtype == DType::kBF16);
  memory_ = AllocateZeroed(device, static_cast<size_t>(bytes()));
}

PackedWeights::PackedWeights(void* memory, int64_t out, int64_t in, DType dtype)
    : out_(out), in_(in), dtype_(dtype), memory_(memory, [](void*) {}) {}

std::unique_ptr<PackedWeights> PackLinear(Device& device, std::span<const HostMatrix> parts,
                                          DType dtype) {
  int64_t out = 0;
  for (const HostMatrix& part : parts) {
    assert(part.cols == parts.front().cols);
    out += part.rows;
  }
  auto weights = std::make_unique<PackedWeights>(device, out, parts.front().cols, dtype);
  char* to = static_cast<char*>(weights->data());
  for (const HostMatrix& part : parts) {
    UploadPart(device, part, dtype, to);
    to += static_cast<size_t>(part.rows * part.cols) * SizeOf(dtype);
  }
  return weights;
}

}  // namespace hippodrome::cuda
