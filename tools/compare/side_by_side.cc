#include "tools/compare/side_by_side.h"

#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <utility>

namespace hippodrome {

OwnedTensor TwinTensors::Join(OwnedTensor expected, OwnedTensor actual) {
  const auto* address = static_cast<const char*>(expected.view.data);
  const Tensor view = expected.view;
  {
    const std::lock_guard lock(mutex_);
    twins_[address] = {view, actual.view};
  }
  // Forgotten before the memory goes, whose address may then come again.
  const auto forget = [this, address, expected = std::move(expected.memory),
                       actual = std::move(actual.memory)](void*) {
    const std::lock_guard lock(mutex_);
    twins_.erase(address);
  };
  return {view, std::shared_ptr<void>(view.data, forget)};
}

Tensor TwinTensors::Of(const Tensor& view) const {
  if (view.data == nullptr) return {};
  const std::lock_guard lock(mutex_);
  const auto* address = static_cast<const char*>(view.data);
  const auto next = twins_.upper_bound(address);
  assert(next != twins_.begin());
  const auto& [base, twins] = *std::prev(next);
  const int64_t offset = (address - base) / static_cast<int64_t>(SizeOf(view.dtype));
  const int64_t row = offset / twins.expected.stride;
  const int64_t col = offset % twins.expected.stride;
  if (twins.expected.rows == 1) {
    const Tensor twin = twins.actual.Cols(col, view.rows * view.cols);
    return {twin.data, twin.dtype, view.rows, view.cols, view.cols};
  }
  Tensor twin = twins.actual.Rows(row, 1).Cols(col, view.cols);
  twin.rows = view.rows;
  twin.stride *= view.stride / twins.expected.stride;
  return twin;
}

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
