// LayerNorm of rows that threads hold in registers.
#ifndef HIPPODROME_KERNELS_CUDA_BASE_ROW_NORM_CUH_
#define HIPPODROME_KERNELS_CUDA_BASE_ROW_NORM_CUH_

#include "kernels/cuda/base/block_reduce.cuh"
#include "kernels/cuda/base/elements.cuh"
#include "kernels/cuda/base/row_vector.cuh"

namespace hippodrome::cuda {

// Values of a row that one thread holds.
inline constexpr int kNormValues = 16;

// Warps that share a row of d values. Their number decides the order of its sums.
inline int64_t NormWarps(int64_t d) {
  constexpr int64_t kWarpValues = kWarp * kNormValues;
  return (d + kWarpValues - 1) / kWarpValues;
}

template <typename T>
struct NormRows {
  const float* x;  // rows of x_stride
  int64_t x_stride;
  const float* gamma;
  const float* beta;
  float epsilon;
  int d;
  T* y;  // rows of y_stride; may be x
  int64_t y_stride;
};

struct NormStatistics {
  float mean;
  float scale;  // 1 / sqrt(var + epsilon)
};

// Rows by `threads` threads, NormWarps(d) warps of a block, of which this is number `thread`. With
// kWidth 4, d is a multiple of 4, and all rows are aligned for vectors of 4 elements.
template <typename T, int kWidth>
class RowNorm {
 public:
  static constexpr int kGroups = kNormValues / kWidth;
  // Zeros beyond the row's end.
  using Values = RowVector<float, kWidth>[kGroups];

  __device__ RowNorm(const NormRows<T>& a, int thread, int threads)
      : a_(a), thread_(thread), threads_(threads) {}

  __device__ void PrefetchParameters() const {
#pragma unroll
    for (int j = 0; j < kGroups; ++j) {
      if (Column(j) >= a_.d) continue;
      Prefetch(a_.gamma + Column(j));
      Prefetch(a_.beta + Column(j));
    }
  }

  __device__ void Load(int64_t row, Values& v) const {
    const float* x = a_.x + row * a_.x_stride;
#pragma unroll
    for (int j = 0; j < kGroups; ++j) {
      if (Column(j) < a_.d) v[j] = LoadVector<float, kWidth>(x + Column(j));
    }
  }

  // Partials are of the row's warps, as SumOfWarps() wants them: its barrier lets nobody write
  // those of the other sum too early. Every thread of the block must come.
  __device__ NormStatistics Statistics(const Values& v, float* sum_partials,
                                       float* square_partials) const {
    const int warp = thread_ / kWarp;
    const int warps = threads_ / kWarp;
    float sum = 0;
#pragma unroll
    for (int j = 0; j < kGroups; ++j) {
      for (float value : v[j].values) sum += value;
    }
    const float count = static_cast<float>(a_.d);
    const float mean = SumOfWarps(sum, warp, warps, sum_partials) / count;
    float squares = 0;
#pragma unroll
    for (int j = 0; j < kGroups; ++j) {
      if (Column(j) >= a_.d) continue;
      for (float value : v[j].values) squares = fmaf(value - mean, value - mean, squares);
    }
    return {mean,
            1.0f / sqrtf(SumOfWarps(squares, warp, warps, square_partials) / count + a_.epsilon)};
  }

  __device__ void Store(const Values& v, const NormStatistics& statistics, int64_t row) const {
    T* y = a_.y + row * a_.y_stride;
    const int first = Forget(Column(0));  // or parameters would stay in registers
#pragma unroll
    for (int j = 0; j < kGroups; ++j) {
      const int column = first + Column(j) - Column(0);
      if (column >= a_.d) continue;
      const auto gamma = LoadVector<float, kWidth>(a_.gamma + column);
      const auto beta = LoadVector<float, kWidth>(a_.beta + column);
      RowVector<T, kWidth> out;
      for (int i = 0; i < kWidth; ++i) {
        const float normalised = (v[j].values[i] - statistics.mean) * statistics.scale;
        out.values[i] = FromFloat<T>(fmaf(normalised, gamma.values[i], beta.values[i]));
      }
      StoreVector(out, y + column);
    }
  }

 private:
  __device__ int Column(int group) const { return (group * threads_ + thread_) * kWidth; }

  const NormRows<T>& a_;
  const int thread_;
  const int threads_;
};

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_BASE_ROW_NORM_CUH_
