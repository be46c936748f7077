// What the gradient of a causal convolution takes beside fft_conv.h.
//
// A right-angle transform of L points multiplies polynomials modulo z^L = i, so that the terms that
// wrap around come out imaginary. A conjugate spectrum is that of reversed time, where they come
// out times -i: correlations need neither reversal nor a longer transform.
#ifndef HIPPODROME_KERNELS_CPU_CONV_FFT_GRADIENT_H_
#define HIPPODROME_KERNELS_CPU_CONV_FFT_GRADIENT_H_

#include "kernels/cpu/conv/fft_plan.h"
#include "kernels/cpu/conv/time_series.h"

namespace hippodrome::cpu {

// The series have kTileChannels channels and T <= plan.length() tokens. Spectra are [plan.length(),
// re | im, kTileChannels]; that of the kernel k is divided by plan.length(), see TransformTile().
// work: plan.work_floats().

// y[t] = sum_{s <= t} k[s] x[t - s], and the spectrum of x in `kept`, unless that is null.
void ConvolveKept(const FftPlan& plan, const float* spectrum, const TimeSeries& x,
                  const TimeSeries& y, float* kept, float* work);

// dx[t] = sum_{s >= t} k[s - t] dy[s], and to `sums` the spectrum of sum_t dy[t] x[t - l], which is
// the gradient of k[l]. x: as ConvolveKept() kept it. dx may be dy.
void CorrelateKept(const FftPlan& plan, const float* spectrum, const float* kept,
                   const TimeSeries& dy, const TimeSeries& dx, float* sums, float* work);

// y[t] = plan.length() times what has `spectrum`.
void InverseTile(const FftPlan& plan, const float* spectrum, const TimeSeries& y, float* work);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_CONV_FFT_GRADIENT_H_
