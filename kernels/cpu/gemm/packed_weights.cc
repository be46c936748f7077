#include "kernels/cpu/gemm/packed_weights.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <type_traits>

#include "kernels/cpu/base/memory.h"
#include "kernels/host_matrix.h"

namespace hippodrome::cpu {
namespace {

template <typename T>
uint32_t BF16Bits(T x) {
  if constexpr (std::is_same_v<T, BF16>) return x.bits;
  return ToBF16(ToFloat(x)).bits;
}

// Row `row` of one of the stacked matrices.
struct HostRow {
  const HostMatrix* part;
  int64_t row;

  template <typename T>
  const T* data() const {
    return static_cast<const T*>(part->data) + row * part->cols;
  }
};

HostRow FindRow(std::span<const HostMatrix> parts, int64_t row) {
  for (const HostMatrix& part : parts) {
    if (row < part.rows) return {&part, row};
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
    for (int64_t k = begin; k < end; ++k) out[k * kPanelColumns] = ToFloat(row[k]);
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
  switch (row.part->dtype) {
    case DType::kBF16:
      return PackColumns(row.data<BF16>(), begin, end, column, dtype, panel);
    case DType::kF16:
      return PackColumns(row.data<Half>(), begin, end, column, dtype, panel);
    default:
      return PackColumns(row.data<float>(), begin, end, column, dtype, panel);
  }
}

// Group `group` of a row of W into a column of a panel.
template <typename Panel>
void PackGroup(const HostRow& row, int64_t group, int64_t column, Panel& panel) {
  int8_t integers[Panel::kGroup];
  panel.scales[column] = ReadGroup(*row.part, row.row, group, Panel::kType, integers);
  for (int64_t k = 0; k < Panel::kGroup; ++k) panel.Set(k, column, integers[k]);
}

template <typename Panel>
void PackGroups(std::span<const HostRow> rows, int64_t in, char* panel) {
  auto* groups = reinterpret_cast<Panel*>(panel);
  for (int64_t group = 0; group < QuantizedGroups(in, Panel::kType); ++group) {
    for (size_t r = 0; r < rows.size(); ++r) {
      PackGroup(rows[r], group, static_cast<int64_t>(r), groups[group]);
    }
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
  if (IsQuantized(weights.dtype())) {
    const auto pack = weights.dtype() == DType::kI8 ? PackGroups<Int8Panel> : PackGroups<Int4Panel>;
    return pack(std::span(sources, static_cast<size_t>(rows)), weights.in(), weights.panel(index));
  }
  for (int64_t begin = 0; begin < weights.in(); begin += kStrip) {
    const int64_t end = std::min(begin + kStrip, weights.in());
    for (int64_t r = 0; r < rows; ++r) {
      PackColumns(sources[r], begin, end, r, weights.dtype(), weights.panel(index));
    }
  }
}

template <typename Panel>
void UnpackGroups(const char* panel, int64_t column, int64_t in, float* values) {
  const auto* groups = reinterpret_cast<const Panel*>(panel);
  for (int64_t k = 0; k < in; ++k) {
    const Panel& group = groups[k / Panel::kGroup];
    values[k] =
        static_cast<float>(group.Get(k % Panel::kGroup, column)) * ToFloat(group.scales[column]);
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
  assert(std::ranges::find(kWeightTypes, dtype) != std::end(kWeightTypes));
}

int64_t PackedWeights::depth() const {
  if (IsQuantized(dtype_)) return QuantizedGroups(in_, dtype_);
  return dtype_ == DType::kF32 ? in_ : (in_ + 1) / 2;
}

int64_t PackedWeights::PanelBytes(int64_t in, DType dtype) {
  if (IsQuantized(dtype)) {
    const size_t bytes = dtype == DType::kI8 ? sizeof(Int8Panel) : sizeof(Int4Panel);
    return QuantizedGroups(in, dtype) * static_cast<int64_t>(bytes);
  }
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
    UnpackGroups<Int8Panel>(panel, column, weights.in(), values);
  } else if (weights.dtype() == DType::kI4) {
    UnpackGroups<Int4Panel>(panel, column, weights.in(), values);
  } else {
    const BF16* in = reinterpret_cast<const BF16*>(panel) + column * 2;
    for (int64_t k = 0; k < weights.in(); ++k) {
      values[k] = ToFloat(in[(k / 2) * kPanelColumns * 2 + k % 2]);
    }
  }
}

}  // namespace hippodrome::cpu
