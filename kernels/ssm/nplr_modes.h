// One channel of an NplrParameters, on the host in double precision: its numbers, their
// discretisation, and its kernel, either as a recurrence of channels side by side or by its
// generating function.
#ifndef HIPPODROME_KERNELS_SSM_NPLR_MODES_H_
#define HIPPODROME_KERNELS_SSM_NPLR_MODES_H_

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/backend.h"

namespace hippodrome {

// The numbers of a channel, halves of conjugate pairs, and where their gradients go.
struct NplrNumbers {
  std::vector<std::complex<double>> lambda, b, p, c;  // [M]
  double dt = 0;
};

int64_t NplrRows(const NplrParameters& parameters);  // S

NplrNumbers NumbersOfChannel(const NplrParameters& parameters, int64_t channel);

// ---- Discretisation -----------------------------------------------------------------------------

inline constexpr int64_t kNplrLanes = 8;  // channels of a group

// A complex number for each channel of a group.
struct alignas(64) NplrLanes {
  std::complex<double> Get(int64_t lane) const { return {re[lane], im[lane]}; }
  void Set(int64_t lane, std::complex<double> value) {
    re[lane] = value.real();
    im[lane] = value.imag();
  }

  double re[kNplrLanes] = {};
  double im[kNplrLanes] = {};
};

// x_0 = b, x_{l+1} = d x_l - u r_l with r_l = 2 Re sum_n v_n x_l[n], K[l] = 2 Re sum_n c_n x_l[n].
struct NplrMode {
  NplrLanes d, u, v, b, c;
};
using NplrGroup = std::vector<NplrMode>;  // [M]

// The bilinear rule by the Woodbury identity, as lane `lane` of `group`. With h = dt / 2,
// R = 1 / (1 - h Lambda), s = h / (1 + h P* R P), of which sums over modes are over whole pairs:
//   dA = 2 (I - h A)^-1 - I = (2 R - I) - 2 s R P P* R,  dB = dt (R B - s R P P* R B)
void DiscretizeNplr(const NplrNumbers& numbers, int64_t lane, NplrGroup& group);

// The gradients of `numbers` from those of the group.
NplrNumbers DiscretizeNplrGradient(const NplrNumbers& numbers, int64_t lane,
                                   const NplrGroup& gradients);

// Replaces C~ = C (I - dA^length), of which x.c is, by C. Solved as a dense system of M pairs, by
// elimination with the largest pivots: |dA| <= 1, so its powers keep their digits.
void UnfoldOutput(int64_t length, NplrNumbers& x);

// ---- The kernel as a recurrence -----------------------------------------------------------------

// kernel: [length, kNplrLanes].
void NplrGroupKernel(const NplrGroup& group, int64_t length, double* kernel);

// d / d Re + i d / d Im of each number. dk: d loss / d K, [length, kNplrLanes].
NplrGroup NplrGroupGradient(const NplrGroup& group, int64_t length, const double* dk);

// ---- The kernel by its generating function ------------------------------------------------------

// Of a channel whose C is stored as C~ = C (I - dA^n): the first kernel.size() <= n points of K,
// where x.c is C~. At the n-th roots of unity w,
//   sum_{l<n} K[l] w^l = C~ (I - w dA)^-1 dB = C~ ((1 - w) I - (1 + w) dt/2 A)^-1 dt B
// which the Woodbury identity reduces to sums over modes (S4, section 3).
void NplrCircularKernel(const NplrNumbers& x, int64_t n, std::span<double> kernel);

// The gradients of x from dk, d loss / d K of the first dk.size() <= n points.
NplrNumbers NplrCircularGradient(const NplrNumbers& x, int64_t n, std::span<const double> dk);

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_SSM_NPLR_MODES_H_
