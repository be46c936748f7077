#include "tools/evaluate/label_names.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "engine/base/one_line.h"
#include "engine/base/status.h"

namespace hippodrome {
namespace {

std::string Lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

std::string Listed(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

absl::Status BadLabel(const LabelledText& example, const std::string& expected) {
  return InvalidArgument("line " + std::to_string(example.line) + ": the label is '" +
                         OneLine(example.label) + "', expected " + OneLine(expected));
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> ClassesOf(const std::vector<LabelledText>& examples,
                                               const std::vector<std::string>& names) {
  std::vector<int64_t> classes;
  for (const LabelledText& example : examples) {
    const auto found = std::find(names.begin(), names.end(), example.label);
    if (found == names.end()) return BadLabel(example, "one of " + Listed(names));
    classes.push_back(found - names.begin());
  }
  return classes;
}

absl::StatusOr<std::vector<double>> ScoresOf(const std::vector<LabelledText>& examples) {
  std::vector<double> scores;
  for (const LabelledText& example : examples) {
    double score = 0;
    const char* end = example.label.data() + example.label.size();
    const auto [stop, error] = std::from_chars(example.label.data(), end, score);
    if (error != std::errc() || stop != end || !std::isfinite(score)) {
      return BadLabel(example, "a number");
    }
    scores.push_back(score);
  }
  return scores;
}

std::vector<int64_t> ClassOfOutputs(const std::vector<std::string>& model_labels,
                                    const std::vector<std::string>& names) {
  std::vector<int64_t> by_name;
  for (const std::string& label : model_labels) {
    const auto same = [&](const std::string& name) { return Lower(name) == Lower(label); };
    by_name.push_back(std::find_if(names.begin(), names.end(), same) - names.begin());
  }
  std::vector<int64_t> in_order(names.size());
  std::iota(in_order.begin(), in_order.end(), 0);
  return std::is_permutation(by_name.begin(), by_name.end(), in_order.begin(), in_order.end())
             ? by_name
             : in_order;
}

}  // namespace hippodrome
