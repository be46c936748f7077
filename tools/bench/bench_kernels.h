// Speed of single kernels.
#ifndef HIPPODROME_TOOLS_BENCH_BENCH_KERNELS_H_
#define HIPPODROME_TOOLS_BENCH_BENCH_KERNELS_H_

#include <vector>

#include "tools/bench/bench_report.h"
#include "tools/limits/machine.h"

namespace hippodrome {

// Everything below, in this order.
std::vector<BenchResult> BenchKernels(const Ceilings& ceilings, const CpuOptions& cpu);

// Causal convolution of 768 channels, time along rows, for 512 to 16384 points on one thread, in ns
// per (channel, time) point: "fft_conv", and where FFTW was there at build time "fft_conv fftw"
// (channels along rows, real transforms of twice the length) and the ratio of the two, "fft_conv /
// fftw". Both keep the kernels as spectra; the best of interleaved runs counts.
// one_thread: rates of one thread.
std::vector<BenchResult> BenchLongConvolution(const Ceilings& one_thread);

// An H3 layer of 768 channels between its projections, in ns per (channel, token): "h3_sequence" on
// prompts and "h3_step" on batches. States of the batches exceed the caches.
std::vector<BenchResult> BenchH3Layer(const Ceilings& ceilings, const CpuOptions& cpu);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_BENCH_BENCH_KERNELS_H_
