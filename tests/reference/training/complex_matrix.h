// Small square matrices of complex numbers.
#ifndef HIPPODROME_TESTS_REFERENCE_TRAINING_COMPLEX_MATRIX_H_
#define HIPPODROME_TESTS_REFERENCE_TRAINING_COMPLEX_MATRIX_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hippodrome::reference {

using ComplexVector = std::vector<std::complex<double>>;

struct ComplexMatrix {
  ComplexMatrix() = default;
  explicit ComplexMatrix(size_t size) : size(size), values(size * size) {}

  std::complex<double>& operator()(size_t r, size_t c) { return values[r * size + c]; }
  std::complex<double> operator()(size_t r, size_t c) const { return values[r * size + c]; }

  size_t size = 0;
  ComplexVector values;
};

ComplexMatrix Identity(size_t size);
ComplexMatrix Transpose(const ComplexMatrix& a);
// a^n, n >= 0.
ComplexMatrix Power(const ComplexMatrix& a, int64_t n);
// By elimination. REQUIRES: a is regular.
ComplexMatrix Inverse(ComplexMatrix a);

ComplexMatrix operator*(const ComplexMatrix& a, const ComplexMatrix& b);
ComplexMatrix operator*(std::complex<double> s, ComplexMatrix a);
ComplexMatrix operator-(ComplexMatrix a, const ComplexMatrix& b);
ComplexVector operator*(const ComplexMatrix& a, const ComplexVector& x);
ComplexVector operator*(std::complex<double> s, ComplexVector x);

// a += x y^T, without conjugation.
void AddOuter(const ComplexVector& x, const ComplexVector& y, ComplexMatrix& a);

}  // namespace hippodrome::reference

#endif  // HIPPODROME_TESTS_REFERENCE_TRAINING_COMPLEX_MATRIX_H_
