#include "kernels/ssm/nplr_modes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/ssm/nplr_ssm.h"
#include "tests/kernels/random_long_conv.h"

namespace hippodrome::nplr_modes_test {
namespace {

// The kernel of what is stored as C (I - dA^n), which its generating function gives, is that of the
// recurrence with C.
TEST(UnfoldOutputTest, GivesTheOutputsOfTheRecurrence) {
  for (const int64_t length : {1, 2, 7, 64, 100, 1024}) {
    for (const int64_t modes : {1, 3, 32}) {
      const RandomLongConv ssm(NplrParameters{.channels = 2, .modes = modes, .c_length = length});
      const auto p = std::get<NplrParameters>(ssm.parameters());
      const std::vector<double> expected = NplrKernel(p, length + 50);
      double largest = 0;
      for (const double k : expected) largest = std::max(largest, std::abs(k));
      for (int64_t c = 0; c < p.channels; ++c) {
        NplrNumbers numbers = NumbersOfChannel(p, c);
        UnfoldOutput(length, numbers);
        NplrGroup group(static_cast<size_t>(modes));
        DiscretizeNplr(numbers, 0, group);
        std::vector<double> kernel(static_cast<size_t>((length + 50) * kNplrLanes));
        NplrGroupKernel(group, length + 50, kernel.data());
        for (int64_t l = 0; l < length + 50; ++l) {
          ASSERT_NEAR(kernel[static_cast<size_t>(l * kNplrLanes)],
                      expected[static_cast<size_t>(c * (length + 50) + l)], 1e-10 * largest)
              << "point " << l << " of " << length << ", " << modes << " modes";
        }
      }
    }
  }
}

}  // namespace
}  // namespace hippodrome::nplr_modes_test
