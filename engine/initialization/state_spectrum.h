// The state matrices that SSMs start from, in the form in which checkpoints store them.
#ifndef HIPPODROME_ENGINE_INITIALIZATION_STATE_SPECTRUM_H_
#define HIPPODROME_ENGINE_INITIALIZATION_STATE_SPECTRUM_H_

#include <cstdint>
#include <vector>

#include "engine/initialization/initial_weights.h"
#include "engine/initialization/random_stream.h"

namespace hippodrome {

// Im A of the N / 2 modes of a measure other than kDiag.
std::vector<float> ImaginaryParts(Measure measure, int64_t n);

// Im A of the N modes of an encoder.
std::vector<float> ImaginaryParts(EncoderScaling scaling, int64_t n);

// One row of what an S4 layer stores, for N / 2 modes: HiPPO-LegS, but |Im B| at most 2, as
// published.
struct NplrRow {
  std::vector<float> a_real, a_imag;  // [M], Lambda = -exp(a_real) - i a_imag
  std::vector<float> b, p;            // [M, 2]
};
NplrRow HippoLegsRow(int64_t n);

// C [channels, M, 2] of S4D, into which B [s, M] is folded: C_cn B_(c mod s)n, complex normal both,
// and B divided by sqrt(2 sum_n |B_n / A_n|^2), A = -1/2 + i a_imag.
std::vector<float> FoldedOutputs(const std::vector<float>& a_imag, int64_t s, int64_t channels,
                                 RandomStream stream);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_INITIALIZATION_STATE_SPECTRUM_H_
