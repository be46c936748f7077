// y = epilogue(x W^T) on packed weights.
//
// Our own product rather than a library's, for three properties that none gives together: a row's
// bits do not depend on the number of rows; one packed copy serves prompts, steps and the
// embedding, so that a model takes little more memory than its weights; and processors without
// AVX-512 or bf16 instructions run the same file. It reaches 88 to 98 % of the peak at 512 rows, as
// oneDNN 2.6 with packed weights does, and takes less time than it below 64 rows.
#ifndef HIPPODROME_KERNELS_CPU_GEMM_LINEAR_H_
#define HIPPODROME_KERNELS_CPU_GEMM_LINEAR_H_

#include "kernels/backend.h"
#include "kernels/cpu/base/later_reads.h"
#include "kernels/cpu/base/thread_pool.h"
#include "kernels/cpu/gemm/packed_weights.h"

namespace hippodrome::cpu {

// Which kernel multiplies kBF16, kI8 and kI4 weights. One serves all numbers of rows, so that a
// row's bits do not depend on it.
enum class DotKernel : uint8_t {
  kBest,   // of those below, the fastest that the processor has
  kPlain,  // expands bf16 to f32, bytes to 16 bits
  kDot,    // the dot product of AVX-512; REQUIRES: HaveBF16Dot(), HaveInt8Dot()
  kAmx,    // the matrix registers of AMX; of kI8 weights from so many rows on, with the bits of
           // kDot, which takes fewer; REQUIRES: HaveAmx(), of kI8 HaveInt8Amx(); not for kI4
};

// `kernel` itself unless it is kBest; for weights of `dtype`, not kF32.
DotKernel ChosenKernel(DotKernel kernel, DType dtype = DType::kBF16);

// The contract of Backend::Linear; x and y may also be product inputs (product_inputs.h), x beside
// these weights. Asks for what `later` says where there are rows enough to hide it.
void Linear(ThreadPool& pool, Tensor x, const PackedWeights& w, const Epilogue& epilogue, Tensor y,
            DotKernel kernel = DotKernel::kBest, const LaterReads& later = {});

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_GEMM_LINEAR_H_
