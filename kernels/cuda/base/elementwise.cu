#include "kernels/cuda/base/elementwise.h"

#include "kernels/cuda/base/elements.cuh"

namespace hippodrome::cuda {
namespace {

struct FillBody {
  Elements<float> x;
  float value;
  __device__ void operator()(int64_t row, int64_t column) const { x.At(row, column) = value; }
};

template <typename X, typename Y>
struct CopyBody {
  Elements<const X> x;
  Elements<Y> y;
  __device__ void operator()(int64_t row, int64_t column) const {
    y.At(row, column) = FromFloat<Y>(Widen(x.At(row, column)));
  }
};

struct AddBody {
  Elements<const float> x;
  Elements<float> y;
  __device__ void operator()(int64_t row, int64_t column) const {
    y.At(row, column) += x.At(row, column);
  }
};

// average + rate (x - average): an average of equal values stays what they are.
struct AverageBody {
  Elements<const float> x;
  float rate;
  Elements<float> average;
  __device__ void operator()(int64_t row, int64_t column) const {
    const float old = average.At(row, column);
    average.At(row, column) = fmaf(rate, x.At(row, column) - old, old);
  }
};

template <typename X, typename Y>
void CopyTyped(Device& device, const Tensor& x, const Tensor& y) {
  ForEachElement(device, "copy", JoinedShape({x, y}),
                 CopyBody<X, Y>{ElementsOf<const X>(x), ElementsOf<Y>(y)});
}

template <typename X>
void CopyFrom(Device& device, const Tensor& x, const Tensor& y) {
  if (y.dtype == DType::kBF16) {
    CopyTyped<X, BF16>(device, x, y);
  } else {
    CopyTyped<X, float>(device, x, y);
  }
}

// The kernels of SumOfSquares: parts of a matrix, then the parts. The order of every sum follows
// from the shape of the matrix alone.

constexpr int kSquareThreads = 256;
constexpr int kSquareColumns = 32 * kSquareThreads;  // of a block

// Over the block's kSquareThreads threads; thread 0 gets the result.
__device__ inline double BlockSum(double x) {
  __shared__ double warps[kSquareThreads / kWarp];
  for (int mask = kWarp / 2; mask > 0; mask /= 2) x += __shfl_xor_sync(kAllLanes, x, mask);
  if (threadIdx.x % kWarp == 0) warps[threadIdx.x / kWarp] = x;
  __syncthreads();
  double sum = 0;
  if (threadIdx.x == 0) {
    for (const double part : warps) sum += part;
  }
  return sum;
}

// Blocks: rows times columns / kSquareColumns, rounded up. Squares of floats are exact in double.
__global__ void __launch_bounds__(kSquareThreads)
    SquaresKernel(Elements<const float> x, int64_t cols, unsigned blocks_of_row, double* parts) {
  const int64_t row = blockIdx.x / blocks_of_row;
  const int64_t begin = int64_t{blockIdx.x % blocks_of_row} * kSquareColumns;
  const int64_t end = min(begin + kSquareColumns, cols);
  double sum = 0;
  for (int64_t column = begin + threadIdx.x; column < end; column += kSquareThreads) {
    const double value = x.At(row, column);
    sum += value * value;
  }
  sum = BlockSum(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

// One block.
__global__ void __launch_bounds__(kSquareThreads)
    SumPartsKernel(const double* parts, int64_t count, double* total) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += kSquareThreads) sum += parts[i];
  sum = BlockSum(sum);
  if (threadIdx.x == 0) *total = sum;
}

constexpr const char* kSumOfSquares = "sum_of_squares";

}  // namespace

double SumOfSquares(Device& device, Tensor x) {
  const ElementsShape shape = JoinedShape({x});
  if (shape.rows == 0 || shape.cols == 0) return 0;
  const int64_t blocks_of_row = (shape.cols + kSquareColumns - 1) / kSquareColumns;
  const int64_t blocks = shape.rows * blocks_of_row;
  // The total, and the parts.
  double* sums = static_cast<double*>(
      device.Scratch(ScratchUse::kSquares, static_cast<size_t>(blocks + 1) * sizeof(double)));
  Launch(device, kSumOfSquares, SquaresKernel,
         {.blocks = dim3(static_cast<unsigned>(blocks)), .threads = dim3(kSquareThreads)},
         ElementsOf<const float>(x), shape.cols, static_cast<unsigned>(blocks_of_row), sums + 1);
  Launch(device, kSumOfSquares, SumPartsKernel,
         {.blocks = dim3(1), .threads = dim3(kSquareThreads)}, sums + 1, blocks, sums);
  double total = 0;
  device.Note(cudaMemcpyAsync(&total, sums, sizeof(total), cudaMemcpyDeviceToHost, device.stream()),
              kSumOfSquares);
  device.Finish(kSumOfSquares);
  return total;
}

void Fill(Device& device, float value, Tensor x) {
  ForEachElement(device, "fill", JoinedShape({x}), FillBody{ElementsOf<float>(x), value});
}

void Copy(Device& device, Tensor x, Tensor y) {
  if (x.dtype == DType::kBF16) {
    CopyFrom<BF16>(device, x, y);
  } else {
    CopyFrom<float>(device, x, y);
  }
}

void Add(Device& device, Tensor x, Tensor y) {
  ForEachElement(device, "add", JoinedShape({x, y}),
                 AddBody{ElementsOf<const float>(x), ElementsOf<float>(y)});
}

void MovingAverage(Device& device, Tensor x, double decay, Tensor average) {
  ForEachElement(device, "moving_average", JoinedShape({x, average}),
                 AverageBody{ElementsOf<const float>(x), static_cast<float>(1 - decay),
                             ElementsOf<float>(average)});
}

}  // namespace hippodrome::cuda
