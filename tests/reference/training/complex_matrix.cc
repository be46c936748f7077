#include "tests/reference/training/complex_matrix.h"

#include <utility>

namespace hippodrome::reference {
namespace {

using Complex = std::complex<double>;

// The row, from `first` on, with the largest entry in column `first`.
size_t PivotRow(const ComplexMatrix& a, size_t first) {
  size_t pivot = first;
  for (size_t r = first + 1; r < a.size; ++r) {
    if (std::abs(a(r, first)) > std::abs(a(pivot, first))) pivot = r;
  }
  return pivot;
}

void SwapRows(ComplexMatrix& a, size_t r, size_t s) {
  for (size_t c = 0; c < a.size; ++c) std::swap(a(r, c), a(s, c));
}

// Row r = factor row r - other row s.
void Combine(ComplexMatrix& a, size_t r, Complex factor, Complex other, size_t s) {
  for (size_t c = 0; c < a.size; ++c) a(r, c) = factor * a(r, c) - other * a(s, c);
}

}  // namespace

ComplexMatrix Identity(size_t size) {
  ComplexMatrix a(size);
  for (size_t i = 0; i < size; ++i) a(i, i) = 1;
  return a;
}

ComplexMatrix Transpose(const ComplexMatrix& a) {
  ComplexMatrix t(a.size);
  for (size_t r = 0; r < a.size; ++r) {
    for (size_t c = 0; c < a.size; ++c) t(c, r) = a(r, c);
  }
  return t;
}

ComplexMatrix Power(const ComplexMatrix& a, int64_t n) {
  if (n == 0) return Identity(a.size);
  const ComplexMatrix half = Power(a, n / 2);
  return n % 2 == 0 ? half * half : half * half * a;
}

ComplexMatrix Inverse(ComplexMatrix a) {
  ComplexMatrix inverse = Identity(a.size);
  for (size_t i = 0; i < a.size; ++i) {
    const size_t pivot = PivotRow(a, i);
    SwapRows(a, i, pivot);
    SwapRows(inverse, i, pivot);
    const Complex scale = 1.0 / a(i, i);
    Combine(a, i, scale, 0, i);
    Combine(inverse, i, scale, 0, i);
    for (size_t r = 0; r < a.size; ++r) {
      if (r == i) continue;
      const Complex factor = a(r, i);
      Combine(a, r, 1, factor, i);
      Combine(inverse, r, 1, factor, i);
    }
  }
  return inverse;
}

ComplexMatrix operator*(const ComplexMatrix& a, const ComplexMatrix& b) {
  ComplexMatrix product(a.size);
  for (size_t r = 0; r < a.size; ++r) {
    for (size_t k = 0; k < a.size; ++k) {
      for (size_t c = 0; c < a.size; ++c) product(r, c) += a(r, k) * b(k, c);
    }
  }
  return product;
}

ComplexMatrix operator*(Complex s, ComplexMatrix a) {
  a.values = s * std::move(a.values);
  return a;
}

ComplexMatrix operator-(ComplexMatrix a, const ComplexMatrix& b) {
  for (size_t i = 0; i < a.values.size(); ++i) a.values[i] -= b.values[i];
  return a;
}

ComplexVector operator*(const ComplexMatrix& a, const ComplexVector& x) {
  ComplexVector y(a.size);
  for (size_t r = 0; r < a.size; ++r) {
    for (size_t c = 0; c < a.size; ++c) y[r] += a(r, c) * x[c];
  }
  return y;
}

ComplexVector operator*(Complex s, ComplexVector x) {
  for (Complex& value : x) value *= s;
  return x;
}

void AddOuter(const ComplexVector& x, const ComplexVector& y, ComplexMatrix& a) {
  for (size_t r = 0; r < a.size; ++r) {
    for (size_t c = 0; c < a.size; ++c) a(r, c) += x[r] * y[c];
  }
}

}  // namespace hippodrome::reference
