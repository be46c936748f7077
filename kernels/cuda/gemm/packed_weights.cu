#include "kernels/cuda/gemm/packed_weights.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <vector>

#include "kernels/host_matrix.h"
#include "kernels/quantized_group.h"

namespace hippodrome::cuda {
namespace {

// Elements that are converted before they are uploaded.
constexpr int64_t kBufferElements = 1 << 20;

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
      Narrow(ToFloat(from[begin + i]), buffer[static_cast<size_t>(i)]);
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

// The integers of a group of a row, to the row's bytes.
void PlaceGroup(DType dtype, int64_t group, const int8_t* integers, char* row) {
  if (dtype == DType::kI8) {
    std::memcpy(row + group * kInt8Group, integers, kInt8Group);
    return;
  }
  constexpr int64_t kGroups = kUnitInputs / kInt4Group;
  char* unit = row + group / kGroups * (kUnitInputs / 2) + group % kGroups * 4;
  for (int64_t t = 0; t < 4; ++t) {
    for (int64_t i = 0; i < 4; ++i) {
      const int8_t* pair = integers + 8 * t + i;
      unit[16 * t + i] = static_cast<char>(PackInt4(pair[0], pair[4]));
    }
  }
}

void UploadQuantized(Device& device, std::span<const HostMatrix> parts,
                     const PackedWeights& weights) {
  const int64_t groups = QuantizedGroups(weights.in(), weights.dtype());
  const auto row_bytes = static_cast<size_t>(weights.row_bytes());
  std::vector<BF16> scales(static_cast<size_t>(groups * weights.scale_columns()));
  std::vector<char> rows;
  char* to = static_cast<char*>(weights.data());
  int64_t column = 0;
  const auto upload = [&] {
    CopyToDevice(device, rows.data(), to, rows.size());
    to += rows.size();
    rows.clear();
  };
  int8_t integers[kUnitInputs];
  for (const HostMatrix& part : parts) {
    for (int64_t row = 0; row < part.rows; ++row, ++column) {
      rows.resize(rows.size() + row_bytes);
      for (int64_t group = 0; group < groups; ++group) {
        scales[static_cast<size_t>(group * weights.scale_columns() + column)] =
            ReadGroup(part, row, group, weights.dtype(), integers);
        PlaceGroup(weights.dtype(), group, integers, rows.data() + rows.size() - row_bytes);
      }
      if (rows.size() >= static_cast<size_t>(kBufferElements)) upload();
    }
  }
  upload();
  CopyToDevice(device, scales.data(), weights.scales(), scales.size() * sizeof(BF16));
}

}  // namespace

PackedWeights::PackedWeights(Device& device, int64_t out, int64_t in, DType dtype)
    : out_(out), in_(in), dtype_(dtype) {
  assert(out > 0 && in > 0);
  memory_ = AllocateZeroed(device, static_cast<size_t>(bytes()));
}

PackedWeights::PackedWeights(void* memory, int64_t out, int64_t in, DType dtype)
    : out_(out), in_(in), dtype_(dtype), memory_(memory, [](void*) {}) {
  assert(!IsQuantized(dtype));
}

int64_t PackedWeights::row_bytes() const { return RowBytes(dtype_, units() * kUnitInputs); }

BF16* PackedWeights::scales() const {
  return reinterpret_cast<BF16*>(static_cast<char*>(data()) + out_ * row_bytes());
}

int64_t PackedWeights::bytes() const {
  if (!IsQuantized(dtype_)) return out_ * in_ * static_cast<int64_t>(SizeOf(dtype_));
  const int64_t groups = units() * kUnitInputs / QuantizedGroup(dtype_);
  return out_ * row_bytes() + groups * scale_columns() * static_cast<int64_t>(sizeof(BF16));
}

std::unique_ptr<PackedWeights> PackLinear(Device& device, std::span<const HostMatrix> parts,
                                          DType dtype) {
  int64_t out = 0;
  for (const HostMatrix& part : parts) {
    assert(part.cols == parts.front().cols);
    out += part.rows;
  }
  auto weights = std::make_unique<PackedWeights>(device, out, parts.front().cols, dtype);
  if (IsQuantized(dtype)) {
    UploadQuantized(device, parts, *weights);
    return weights;
  }
  char* to = static_cast<char*>(weights->data());
  for (const HostMatrix& part : parts) {
    UploadPart(device, part, dtype, to);
    to += static_cast<size_t>(part.rows * part.cols) * SizeOf(dtype);
  }
  return weights;
}

}  // namespace hippodrome::cuda
