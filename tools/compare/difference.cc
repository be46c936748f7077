#include "tools/compare/difference.h"

#include <cmath>
#include <cstdio>
#include <limits>

namespace hippodrome {

std::string ToString(const Difference& d) {
  char values[160];
  std::snprintf(values, sizeof(values), "row %lld, column %lld is %.9g, expected %.9g",
                static_cast<long long>(d.row), static_cast<long long>(d.column), d.actual,
                d.expected);
  return "operation " + std::to_string(d.ordinal) + " (" + d.operation + ", after " +
         std::to_string(d.norms) + " norms): " + values;
}

WorstElement FindWorst(std::span<const float> expected, std::span<const float> actual,
                       double tolerance) {
  double squares = 0;
  for (const float x : expected) squares += double{x} * x;
  const double allowed = tolerance * std::sqrt(squares);
  WorstElement worst;
  for (size_t i = 0; i < expected.size(); ++i) {
    const float e = expected[i];
    const float a = actual[i];
    if (e == a || (std::isnan(e) && std::isnan(a))) continue;
    double error = std::abs(double{e} - a) / allowed;
    if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
    if (error > worst.error) worst = {static_cast<int64_t>(i), error};
  }
  return worst;
}

}  // namespace hippodrome
