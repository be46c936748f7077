#include "kernels/cuda/gemm/linear.h"

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/tensor_memory.h"
#include "kernels/cuda/gemm/linear_step.cuh"

namespace hippodrome::cuda {
namespace {

unsigned Blocks(int64_t size, int64_t per_block) {
  return static_cast<unsigned>((size + per_block - 1) / per_block);
}

template <typename X, typename W, typename Y, int kTiles, bool kAligned>
void LaunchStep(Device& device, const LinearStepArguments<X, W, Y>& arguments) {
  Launch(device, "linear_step", LinearStepKernel<X, W, Y, kTiles, kAligned>,
         {.blocks =
              dim3(Blocks(arguments.out, kTiles * kTileColumns), Blocks(arguments.rows, kStepRows)),
          .threads = dim3(kStepWarps * kWarp),
          .shared_bytes = kStepWarps * kTiles * kTileSums * sizeof(float)},
         arguments);
}

template <typename X, typename W, typename Y>
void Step(Device& device, const LinearCall& call) {
  const LinearStepArguments<X, W, Y> arguments = {
      .x = DeviceRow<X>(call.x, 0),
      .x_stride = call.x.stride,
      .w = static_cast<const W*>(call.w.data()),
      .rows = call.x.rows,
      .in = static_cast<int>(call.w.in()),
      .out = static_cast<int>(call.w.out()),
      .epilogue = MakeEpilogue<Y>(call.epilogue, call.y)};
  if (!RowsAreAligned(call.x, kPiece<W>)) {  // of as many columns as W
    return LaunchStep<X, W, Y, 1, false>(device, arguments);
  }
  // The widest blocks that leave two for every multiprocessor: they read x less often.
  const int64_t tiles = call.w.out() / kTileColumns / (2 * device.multiprocessors());
  if (tiles >= 4) return LaunchStep<X, W, Y, 4, true>(device, arguments);
  if (tiles >= 2) return LaunchStep<X, W, Y, 2, true>(device, arguments);
  LaunchStep<X, W, Y, 1, true>(device, arguments);
}

}  // namespace

void LinearStep(Device& device, const LinearCall& call) {
  assert(call.x.cols == call.w.in() && call.y.cols == call.w.out());
  assert(call.x.rows == call.y.rows);
  if (call.x.rows == 0) return;
  if (call.w.dtype() == DType::kF32) {
    Step<float, float, float>(device, call);
  } else if (call.x.dtype == DType::kF32) {
    Step<float, BF16, float>(device, call);
  } else if (call.y.dtype == DType::kF32) {
    Step<BF16, BF16, float>(device, call);
  } else {
    Step<BF16, BF16, BF16>(device, call);
  }
}

void Linear(Device& device, MatmulLibrary* library, const LinearCall& call) {
  if (call.x.rows > kStepRows && library != nullptr && library->Linear(device, call)) return;
  LinearStep(device, call);
}

}  // namespace hippodrome::cuda
