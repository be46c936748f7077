#include "engine/initialization/parameter_list.h"

#include <cassert>
#include <functional>
#include <numeric>

namespace hippodrome {
namespace {

int64_t Elements(const ParameterList::Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

template <typename Draw>
std::vector<float> Drawn(const ParameterList::Shape& shape, Draw draw) {
  std::vector<float> values(Elements(shape));
  for (float& value : values) value = static_cast<float>(draw());
  return values;
}

}  // namespace

void ParameterList::Constant(const std::string& name, const Shape& shape, float value) {
  Values(name, shape, std::vector<float>(Elements(shape), value));
}

void ParameterList::Normal(const std::string& name, const Shape& shape, double deviation) {
  RandomStream stream = Stream(name);
  Values(name, shape, Drawn(shape, [&] { return deviation * stream.Normal(); }));
}

void ParameterList::TruncatedNormal(const std::string& name, const Shape& shape, double deviation) {
  RandomStream stream = Stream(name);
  Values(name, shape, Drawn(shape, [&] { return deviation * stream.TruncatedNormal(); }));
}

void ParameterList::Uniform(const std::string& name, const Shape& shape, double low, double high) {
  RandomStream stream = Stream(name);
  Values(name, shape, Drawn(shape, [&] { return stream.Uniform(low, high); }));
}

void ParameterList::Repeated(const std::string& name, const Shape& shape,
                             const std::vector<float>& row) {
  size_t next = 0;
  Values(name, shape, Drawn(shape, [&] { return row[next++ % row.size()]; }));
}

void ParameterList::Values(const std::string& name, const Shape& shape, std::vector<float> values) {
  assert(static_cast<int64_t>(values.size()) == Elements(shape));
  parameters_.push_back({name, shape, std::move(values)});
}

void ParameterList::Untrained(const std::string& name, const Shape& shape,
                              std::vector<float> values) {
  Values(name, shape, std::move(values));
  parameters_.back().trained = false;
}

void ParameterList::Linear(const std::string& prefix, int64_t out, int64_t in, double deviation) {
  Normal(prefix + "weight", {out, in}, deviation);
  Constant(prefix + "bias", {out}, 0);
}

void ParameterList::Norm(const std::string& prefix, int64_t size) {
  Constant(prefix + "weight", {size}, 1);
  Constant(prefix + "bias", {size}, 0);
}

}  // namespace hippodrome
