// The training operations of CpuBackend on memory, and the optimizer; each forwards to the file of
// its forward.
#include "kernels/cpu/adamw.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/elementwise.h"

namespace hippodrome {

void CpuBackend::Fill(float value, Tensor x) { cpu::Fill(pool_, value, x); }

void CpuBackend::Copy(Tensor x, Tensor y) { cpu::Copy(pool_, x, y); }

void CpuBackend::Add(Tensor x, Tensor y) { cpu::Add(pool_, x, y); }

double CpuBackend::SumOfSquares(Tensor x) { return cpu::SumOfSquares(pool_, x); }

void CpuBackend::AdamW(const AdamWStep& step, Tensor gradient, Tensor m, Tensor v, Tensor w) {
  cpu::AdamW(pool_, step, gradient, m, v, w);
}

void CpuBackend::MovingAverage(Tensor x, double decay, Tensor average) {
  cpu::MovingAverage(pool_, x, decay, average);
}

}  // namespace hippodrome
