// One channel of an NplrParameters after discretisation, and back.
#ifndef HIPPODROME_KERNELS_SSM_NPLR_MODES_H_
#define HIPPODROME_KERNELS_SSM_NPLR_MODES_H_

#include <complex>
#include <cstdint>
#include <vector>

#include "kernels/backend.h"
#include "kernels/ssm/nplr_recurrence.h"

namespace hippodrome {

// The numbers of a channel, halves of conjugate pairs, and where their gradients go.
struct NplrNumbers {
  std::vector<std::complex<double>> lambda, b, p, c;  // [M]
  double dt = 0;
};

int64_t NplrRows(const NplrParameters& parameters);  // S

NplrNumbers NumbersOfChannel(const NplrParameters& parameters, int64_t channel);

// The bilinear rule by the Woodbury identity, as lane `lane` of `group`. With h = dt / 2,
// R = 1 / (1 - h Lambda), s = h / (1 + h P* R P), of which sums over modes are over whole pairs:
//   dA = 2 (I - h A)^-1 - I = (2 R - I) - 2 s R P P* R,  dB = dt (R B - s R P P* R B)
void DiscretizeNplr(const NplrNumbers& numbers, int64_t lane, NplrGroup& group);

// The gradients of `numbers` from those of the group.
NplrNumbers DiscretizeNplrGradient(const NplrNumbers& numbers, int64_t lane,
                                   const NplrGroup& gradients);

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_SSM_NPLR_MODES_H_
