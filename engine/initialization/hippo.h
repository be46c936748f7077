// The HiPPO matrices and the diagonal spectra that state-space models start from, in double
// precision (Gu et al., 2020 and 2022; Gupta et al., 2022).
#ifndef HIPPODROME_ENGINE_INITIALIZATION_HIPPO_H_
#define HIPPODROME_ENGINE_INITIALIZATION_HIPPO_H_

#include <complex>
#include <cstdint>
#include <vector>

namespace hippodrome {

// HiPPO-LegS of size N:
//   A[n][k] = -sqrt((2n+1)(2k+1)) for n > k, -(n+1) for n = k, 0 for n < k;  B[n] = sqrt(2n+1)
struct LegS {
  int64_t size = 0;
  std::vector<double> a;  // [N, N]
  std::vector<double> b;  // [N]
};
LegS MakeLegS(int64_t size);

// LegS in the basis V of the eigenvectors of its normal part, A = V (diag(Lambda) - P P*) V*: of
// each conjugate pair the mode with Im Lambda < 0, the smallest |Im| first.  REQUIRES: even size.
struct NplrLegS {
  std::vector<std::complex<double>> lambda;  // [N / 2], Re = -1/2
  std::vector<std::complex<double>> p;       // [N / 2], V* p with p[n] = sqrt(n + 1/2)
  std::vector<std::complex<double>> b;       // [N / 2], V* B
};
NplrLegS MakeNplrLegS(int64_t size);

// The imaginary parts of all N eigenvalues of LegS + p p^T, ascending, both signs ("hippo" of
// BiGS).
std::vector<double> LegSFrequencies(int64_t size);

// Im A of n modes ("diag-lin", "lin"): pi n.
std::vector<double> LinearFrequencies(int64_t modes);

// Im A of n modes ("diag-inv", "inv"): (N / pi) (N / (2n + 1) - 1), where N is `size`: twice the
// modes of which each stands for a pair, or the modes themselves in BiGS.
std::vector<double> InverseFrequencies(int64_t modes, int64_t size);

// What the spectra come from: eigenvalues and eigenvectors of small Hermitian matrices,
// A = V diag(values) V*, values ascending.
struct HermitianEigen {
  std::vector<double> values;                 // [n]
  std::vector<std::complex<double>> vectors;  // [n, n], the columns of V, orthonormal
};

// By Jacobi's method. Time n^3 times a few sweeps.  a: [n, n].
HermitianEigen SolveHermitian(std::vector<std::complex<double>> a, int64_t n);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_INITIALIZATION_HIPPO_H_
