// Eigenvalues and eigenvectors of small Hermitian matrices.
#ifndef HIPPODROME_ENGINE_INITIALIZATION_HERMITIAN_EIGEN_H_
#define HIPPODROME_ENGINE_INITIALIZATION_HERMITIAN_EIGEN_H_

#include <complex>
#include <cstdint>
#include <vector>

namespace hippodrome {

// A = V diag(values) V*, values ascending.
struct HermitianEigen {
  std::vector<double> values;                 // [n]
  std::vector<std::complex<double>> vectors;  // [n, n], the columns of V, orthonormal
};

// By Jacobi's method. Time n^3 times a few sweeps.  a: [n, n].
HermitianEigen SolveHermitian(std::vector<std::complex<double>> a, int64_t n);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_INITIALIZATION_HERMITIAN_EIGEN_H_
