// When two rows of numbers that should be the same differ.
#ifndef HIPPODROME_TOOLS_COMPARE_DIFFERENCE_H_
#define HIPPODROME_TOOLS_COMPARE_DIFFERENCE_H_

#include <cstdint>
#include <span>
#include <string>

#include "kernels/dtype.h"

namespace hippodrome {

// Largest |expected - actual| that is no difference, in 2-norms of the expected row, by the type
// that the actual row is stored in. f32: sums of some thousand products come out within 1e-6 of the
// norm, and a convolution whose sums cancel within some 1e-5; one wrong element among 50,000 of
// like size is 4e-3. bf16: a result is rounded by up to 2^-9 of an element, as are cached keys and
// values, and the operands of a convolution by 2^-11.
inline constexpr double kF32Tolerance = 1e-4;
inline constexpr double kBF16Tolerance = 1e-2;
constexpr double ToleranceOf(DType dtype) {
  return dtype == DType::kBF16 ? kBF16Tolerance : kF32Tolerance;
}

// Where two backends differ.
struct Difference {
  std::string operation;  // "h3_step", "linear 768x3072"
  int64_t ordinal = 0;    // operations before it
  int64_t norms = 0;      // layer norms before it in its pass: with them layers begin
  int64_t row = 0;
  int64_t column = 0;
  float expected = 0;
  float actual = 0;
};

// "operation 12 (h3_step, after 3 norms): row 0, column 7 is 1.5, expected 1.25"
std::string ToString(const Difference& difference);

// The element of a row with the largest error; an error of more than 1 is a difference.
struct WorstElement {
  int64_t column = 0;
  double error = 0;  // in units of the tolerance; infinite where just one is NaN
};
WorstElement FindWorst(std::span<const float> expected, std::span<const float> actual,
                       double tolerance);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_COMPARE_DIFFERENCE_H_
