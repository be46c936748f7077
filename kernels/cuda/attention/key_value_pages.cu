#include "kernels/cuda/attention/key_value_pages.h"

#include <algorithm>
#include <cassert>

#include "kernels/cuda/base/device_code.cuh"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/tensor_memory.h"

namespace hippodrome::cuda {
namespace {

constexpr const char* kExport = "export_rows";
constexpr int kRowThreads = 128;
// Rows that go through scratch memory at once.
constexpr int64_t kPieceRows = 1024;

// `count` rows of a sequence, and the same in scratch memory, [count, d].
template <typename T>
struct RowsView {
  T* pages;
  const int32_t* page_table;
  int32_t first;  // row, after the start of the first page of the table
  int32_t heads;
  int32_t head_dim;
  int32_t page_tokens;
  float* keys;
  float* values;

  // Column `column` of the key of the row; that of its value is value_offset() later.
  __device__ T* Key(int32_t row, int32_t column) const {
    const int32_t at = first + row;
    const int64_t tile = int64_t{page_table[at / page_tokens]} * heads + column / head_dim;
    return pages + tile * 2 * value_offset() + at % page_tokens * head_dim + column % head_dim;
  }
  __device__ int64_t value_offset() const { return int64_t{page_tokens} * head_dim; }
  __host__ __device__ int64_t d() const { return int64_t{heads} * head_dim; }
};

// Grid: the rows.
template <typename T>
__global__ void __launch_bounds__(kRowThreads) ExportRowsKernel(const RowsView<T> x) {
  const auto row = static_cast<int32_t>(blockIdx.x);
  for (int32_t column = static_cast<int32_t>(threadIdx.x); column < x.d(); column += kRowThreads) {
    const T* key = x.Key(row, column);
    x.keys[row * x.d() + column] = Widen(*key);
    x.values[row * x.d() + column] = Widen(key[x.value_offset()]);
  }
}

template <typename T>
__global__ void __launch_bounds__(kRowThreads) ImportRowsKernel(const RowsView<T> x) {
  const auto row = static_cast<int32_t>(blockIdx.x);
  for (int32_t column = static_cast<int32_t>(threadIdx.x); column < x.d(); column += kRowThreads) {
    T* key = x.Key(row, column);
    *key = FromFloat<T>(x.keys[row * x.d() + column]);
    key[x.value_offset()] = FromFloat<T>(x.values[row * x.d() + column]);
  }
}

template <typename T>
RowsView<T> MakeRowsView(Device& device, const PagedSpan& rows) {
  const int64_t tokens = rows.pages.page_tokens();
  const int64_t page = rows.first / tokens;
  const int64_t end = (rows.first + rows.count + tokens - 1) / tokens;
  const auto table =
      rows.page_table.subspan(static_cast<size_t>(page), static_cast<size_t>(end - page));
  RowsView<T> x = {.pages = static_cast<T*>(rows.pages.data()),
                   .page_table = CopyToScratch(device, ScratchUse::kPageTable, table),
                   .first = static_cast<int32_t>(rows.first % tokens),
                   .heads = static_cast<int32_t>(rows.pages.shape().heads),
                   .head_dim = static_cast<int32_t>(rows.pages.shape().head_dim),
                   .page_tokens = static_cast<int32_t>(tokens),
                   .keys = nullptr,
                   .values = nullptr};
  const int64_t floats = kPieceRows * x.d();
  x.keys = static_cast<float*>(
      device.Scratch(ScratchUse::kStateExchange, static_cast<size_t>(2 * floats) * sizeof(float)));
  x.values = x.keys + floats;
  return x;
}

Grid RowsGrid(int64_t count) {
  return {.blocks = dim3(static_cast<unsigned>(count)), .threads = dim3(kRowThreads)};
}

// Calls move(piece, its first value, its values' count) for pieces of at most kPieceRows rows.
template <typename Move>
void ForEachPiece(const PagedSpan& rows, const Move& move) {
  const int64_t d = rows.pages.shape().heads * rows.pages.shape().head_dim;
  for (int64_t done = 0; done < rows.count; done += kPieceRows) {
    const int64_t count = std::min(kPieceRows, rows.count - done);
    move(PagedSpan{rows.pages, rows.page_table, rows.first + done, count},
         static_cast<size_t>(done * d), static_cast<size_t>(count * d));
  }
}

template <typename T>
void Export(Device& device, const PagedSpan& rows, std::span<float> keys, std::span<float> values) {
  ForEachPiece(rows, [&](const PagedSpan& piece, size_t first, size_t count) {
    const RowsView<T> x = MakeRowsView<T>(device, piece);
    Launch(device, kExport, ExportRowsKernel<T>, RowsGrid(piece.count), x);
    CopyToHost(device, x.keys, keys.data() + first, count * sizeof(float), kExport);
    CopyToHost(device, x.values, values.data() + first, count * sizeof(float), kExport);
  });
  device.Finish(kExport);
}

template <typename T>
void Import(Device& device, const PagedSpan& rows, std::span<const float> keys,
            std::span<const float> values) {
  ForEachPiece(rows, [&](const PagedSpan& piece, size_t first, size_t count) {
    const RowsView<T> x = MakeRowsView<T>(device, piece);
    CopyToDevice(device, keys.data() + first, x.keys, count * sizeof(float));
    CopyToDevice(device, values.data() + first, x.values, count * sizeof(float));
    Launch(device, "import_rows", ImportRowsKernel<T>, RowsGrid(piece.count), x);
  });
}

// Whether the pages hold the rows, and so much memory was given.
[[maybe_unused]] bool Fit(const PagedSpan& rows, size_t keys, size_t values) {
  const auto floats =
      static_cast<size_t>(rows.count * rows.pages.shape().heads * rows.pages.shape().head_dim);
  const int64_t room = static_cast<int64_t>(rows.page_table.size()) * rows.pages.page_tokens();
  return rows.first >= 0 && rows.count >= 0 && rows.first + rows.count <= room && keys == floats &&
         values == floats;
}

}  // namespace

PagedRows::PagedRows(Device& device, const AttentionShape& shape, int64_t pages,
                     int64_t page_tokens, DType dtype)
    : shape_(shape),
      pages_(pages),
      page_tokens_(page_tokens),
      page_bytes_(page_tokens * 2 * shape.heads * shape.head_dim *
                  static_cast<int64_t>(SizeOf(dtype))),
      dtype_(dtype) {
  assert(pages >= 0 && page_tokens > 0);
  assert(dtype == DType::kBF16 || dtype == DType::kF32);
  memory_ = AllocateZeroed(device, static_cast<size_t>(pages_ * page_bytes_));
}

void PagedRows::CopyPage(Device& device, int32_t from, int32_t to) {
  assert(from >= 0 && from < pages_ && to >= 0 && to < pages_);
  if (from == to) return;
  char* memory = static_cast<char*>(memory_.get());
  CopyOnDevice(device, memory + from * page_bytes_, memory + to * page_bytes_,
               static_cast<size_t>(page_bytes_), "copy_page");
}

void ExportRows(Device& device, const PagedSpan& rows, std::span<float> keys,
                std::span<float> values) {
  assert(Fit(rows, keys.size(), values.size()));
  rows.pages.dtype() == DType::kBF16 ? Export<BF16>(device, rows, keys, values)
                                     : Export<float>(device, rows, keys, values);
}

void ImportRows(Device& device, const PagedSpan& rows, std::span<const float> keys,
                std::span<const float> values) {
  assert(Fit(rows, keys.size(), values.size()));
  rows.pages.dtype() == DType::kBF16 ? Import<BF16>(device, rows, keys, values)
                                     : Import<float>(device, rows, keys, values);
}

}  // namespace hippodrome::cuda
