#include "kernels/cpu/gemm/packed_weights.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <type_traits>

#include "kernels/cpu/base/memory.h"

namespace hippodrome::cpu {
namespace {

struct Half {
  uint16_t bits;
};

float Widen(float x) { return x; }
float Widen(BF16 x) { return ToFloat(x); }
float Widen(Half x) { return HalfToFloat(x.bits); }

template <typename T>
uint32_t BF16Bits(T x) {
  if constexpr (std::is_same_v<T, BF16>) return x.bits;
  return ToBF16(Widen(x)).bits;
}

// Row `row` of the stacked matrices, and its type.
struct HostRow {
  const void* data;
  DType dtype;
};

HostRow FindRow(std::span<const HostMatrix> parts, int64_t row) {
  for (const HostMatrix& part : parts) {
    if (row < part.rows) {
      const int64_t bytes = part.cols * static_cast<int64_t>(SizeOf(part.dtype));
      return {static_cast<const char*>(part.data) + row * bytes, part.dtype};
    }
    row -= part.rows;
  }
  assert(false);
  return {};
}

// Columns [begin, end) of a row of W into column `column` of a panel; begin is even.
template <typename T>
void PackColumns(const T* row, int64_t begin, int64_t end, int64_t column, DType dtype,
                 char* panel) {
  if (dtype == DType::kF32) {
    float* out = reinterpret_cast<float*>(panel) + column;
    for (int64_t k = begin; k < end; ++k) out[k * kPanelColumns] = Widen(row[k]);
    return;
  }
  uint32_t* out = reinterpret_cast<uint32_t*>(panel) + column;  // pairs, the first in the low half
  int64_t k = begin;
  for (; k + 1 < end; k += 2) {
    out[k / 2 * kPanelColumns] = BF16Bits(row[k]) | BF16Bits(row[k + 1]) << 16;
  }
  if (k < end) out[k / 2 * kPanelColumns] = BF16Bits(row[k]);
}

void PackColumns(const HostRow& row, int64_t begin, int64_t end, int64_t column, DType dtype,
                 char* panel) {
  switch (row.dtype) {
    case DType::kBF16:
      return PackColumns(static_cast<const BF16*>(row.data), begin, end, column, dtype, panel);
    case DType::kF16:
      return PackColumns(static_cast<const Half*>(row.data), begin, end, column, dtype, panel);
    default:
      return PackColumns(static_cast<const float*>(row.data), begin, end, column, dtype, panel);
  }
}

template <typename T>
void WidenGroup(const T* row, int64_t count, float* values) {
  for (int64_t k = 0; k < count; ++k) values[k] = Widen(row[k]);
  std::fill(values + count, values + kInt8Group, 0.0f);
}

// Inputs [begin, begin + count) of a row of W, with zeros up to a whole group.
void WidenGroup(const HostRow& row, int64_t begin, int64_t count, float* values) {
  switch (row.dtype) {
    case DType::kBF16:
      return WidenGroup(static_cast<const BF16*>(row.data) + begin, count, values);
    case DType::kF16:
      return WidenGroup(static_cast<const Half*>(row.data) + begin, count, values);
    default:
      return WidenGroup(static_cast<const float*>(row.data) + begin, count, values);
  }
}

void PackGroup(const float* values, int64_t column, Int8Panel& panel) {
  float largest = 0;
  for (int64_t k = 0; k < kInt8Group; ++k) largest = std::max(largest, std::abs(values[k]));
  const Int8Scale scale = WeightScale(largest);
  panel.scales[column] = ToBF16(scale.scale);
  for (int64_t k = 0; k < kInt8Group; ++k) {
    panel.values[k / 4][column][k % 4] = static_cast<uint8_t>(ToInt8(values[k], scale) + 128);
  }
}

// The strip of columns that is packed before the next row, so that a panel's lines are written
// while they are in the first-level cache.
constexpr int64_t kStrip = 64;

void PackPanel(std::span<const HostMatrix> parts, const PackedWeights& weights, int64_t index) {
  const int64_t first = index * kPanelColumns;
  const int64_t rows = std::min(kPanelColumns, weights.out() - first);
  HostRow sources[kPanelColumns];
  for (int64_t r = 0; r < rows; ++r) sources[r] = FindRow(parts, first + r);
  if (weights.dtype() == DType::kI8) {
    auto* groups = reinterpret_cast<Int8Panel*>(weights.panel(index));
    for (int64_t begin = 0; begin < weights.in(); begin += kInt8Group) {
      for (int64_t r = 0; r < rows; ++r) {
        float values[kInt8Group];
        WidenGroup(sources[r], begin, std::min(kInt8Group, weights.in() - begin), values);
        PackGroup(values, r, groups[begin / kInt8Group]);
      }
    }
    return;
  }
  for (int64_t begin = 0; begin < weights.in(); begin += kStrip) {
    const int64_t end = std::min(begin + kStrip, weights.in());
    for (int64_t r = 0; r < rows; ++r) {
      PackColumns(sources[r], begin, end, r, weights.dtype(), weights.panel(index));
    }
  }
}

}  // namespace

PackedWeights::PackedWeights(int64_t out, int64_t in, DType dtype)
    : PackedWeights(out, in, dtype, nullptr) {
  memory_ = AllocateZeroed(static_cast<size_t>(bytes()));
}

PackedWeights::PackedWeights(int64_t out, int64_t in, DType dtype, void* memory)
    : out_(out), in_(in), dtype_(dtype), memory_(std::shared_ptr<void>(), memory) {
  assert(out > 0 && in > 0);
  assert(dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kI8);
}

int64_t PackedWeights::depth() const {
  if (dtype_ == DType::kI8) return Int8Groups(in_);
  return dtype_ == DType::kF32 ? in_ : (in_ + 1) / 2;
}

int64_t PackedWeights::PanelBytes(int64_t in, DType dtype) {
  if (dtype == DType::kI8) return Int8Groups(in) * static_cast<int64_t>(sizeof(Int8Panel));
  if (dtype == DType::kF32) return in * kPanelColumns * 4;
  const int64_t pairs = (in + 1) / 2;
  return (pairs + kPairBlock - 1) / kPairBlock * kPairBlock * kPanelColumns * 4;
}

std::unique_ptr<PackedWeights> PackLinear(ThreadPool& pool, std::span<const HostMatrix> parts,
                                          DType dtype) {
  int64_t out = 0;
  for (const HostMatrix& part : parts) {
    assert(part.cols == parts.front().cols);
    out += part.rows;
  }
  auto weights = std::make_unique<PackedWeights>(out, parts.front().cols, dtype);
  pool.Run(weights->panels(), [&](int64_t index, int) { PackPanel(parts, *weights, index); });
  return weights;
}

void UnpackRow(const PackedWeights& weights, int64_t row, float* values) {
  assert(row >= 0 && row < weights.out());
  const char* panel = weights.panel(row / kPanelColumns);
  const int64_t column = row % kPanelColumns;
  if (weights.dtype() == DType::kF32) {
    const float* in = reinterpret_cast<const float*>(panel) + column;
    for (int64_t k = 0; k < weights.in(); ++k) values[k] = in[k * kPanelColumns];
  } else if (weights.dtype() == DType::kI8) {
    const auto* groups = reinterpret_cast<const Int8Panel*>(panel);
    for (int64_t k = 0; k < weights.in(); ++k) {
      const Int8Panel& group = groups[k / kInt8Group];
      const int value = group.values[k % kInt8Group / 4][column][k % 4] - 128;
      values[k] = static_cast<float>(value) * ToFloat(group.scales[column]);
    }
  } else {
    const BF16* in = reinterpret_cast<const BF16*>(panel) + column * 2;
    for (int64_t k = 0; k < weights.in(); ++k) {
      values[k] = ToFloat(in[(k / 2) * kPanelColumns * 2 + k % 2]);
    }
  }
}

}  // namespace hippodrome::cpu
