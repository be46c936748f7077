// MakeMatmulLibrary() for builds without cuBLASLt.
#include "kernels/cuda/gemm/linear.h"

namespace hippodrome::cuda {

std::unique_ptr<MatmulLibrary> MakeMatmulLibrary(Device&) { return nullptr; }

}  // namespace hippodrome::cuda
