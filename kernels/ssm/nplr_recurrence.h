// The kernel of a state matrix that is diagonal plus rank one, as its recurrence, for some channels
// side by side, in double precision.
#ifndef HIPPODROME_KERNELS_SSM_NPLR_RECURRENCE_H_
#define HIPPODROME_KERNELS_SSM_NPLR_RECURRENCE_H_

#include <complex>
#include <cstdint>
#include <vector>

namespace hippodrome {

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

// kernel: [length, kNplrLanes].
void NplrGroupKernel(const NplrGroup& group, int64_t length, double* kernel);

// d / d Re + i d / d Im of each number. dk: d loss / d K, [length, kNplrLanes].
NplrGroup NplrGroupGradient(const NplrGroup& group, int64_t length, const double* dk);

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_SSM_NPLR_RECURRENCE_H_
