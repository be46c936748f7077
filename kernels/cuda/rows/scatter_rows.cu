#include "kernels/cuda/rows/scatter_rows.h"

#include "kernels/cuda/rows/scatter_rows.cuh"

namespace hippodrome::cuda {

void ScatterRows(Device& device, Tensor dy, Tensor indices, Tensor dtable) {
  assert(indices.rows == 1 && indices.cols == dy.rows && dtable.cols == dy.cols);
  if (dy.rows == 0 || dy.cols == 0) return;
  Launch(device, "scatter_rows", ScatterRowsKernel,
         {.blocks = dim3(
              static_cast<unsigned>(dy.rows),
              static_cast<unsigned>((dy.cols + kScatterBlockColumns - 1) / kScatterBlockColumns)),
          .threads = dim3(kScatterWarps * kWarp)},
         ScatterArguments{.dy = ElementsOf<const float>(dy),
                          .indices = DeviceRow<int32_t>(indices, 0),
                          .rows = static_cast<int>(dy.rows),
                          .d = static_cast<int>(dy.cols),
                          .dtable = ElementsOf<float>(dtable)});
}

}  // namespace hippodrome::cuda
