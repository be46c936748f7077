#include "kernels/tape/parameters.h"

#include <cassert>
#include <utility>

namespace hippodrome {

void Parameters::Add(const std::string& name, const std::vector<int64_t>& shape,
                     std::vector<float> values) {
  assert(!by_name_.contains(name) && !values.empty());
  Parameter& p = all_.emplace_back();
  p.name = name;
  p.shape = shape;
  p.host = std::move(values);
  const auto elements = static_cast<int64_t>(p.host.size());
  const int64_t rows = shape.size() < 2 ? 1 : shape[0];
  p.value = backend_.NewTensor(rows, elements / rows);
  backend_.Upload(p.host, p.value);
  by_name_[name] = &p;
  by_address_[p.host.data()] = &p;
}

Parameter* Parameters::Find(const std::string& name) {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

Parameter* Parameters::At(std::span<const float> values) {
  const auto found = by_address_.find(values.data());
  if (found == by_address_.end() || found->second->host.size() != values.size()) return nullptr;
  return found->second;
}

void Parameters::Fetch(Parameter& parameter) { backend_.Download(parameter.value, parameter.host); }

void Parameters::Store(Parameter& parameter, std::span<const float> values) {
  assert(values.size() == parameter.host.size());
  parameter.host.assign(values.begin(), values.end());
  backend_.Upload(parameter.host, parameter.value);
}

}  // namespace hippodrome
