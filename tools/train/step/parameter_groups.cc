#include "tools/train/step/parameter_groups.h"

#include <algorithm>
#include <array>

namespace hippodrome {
namespace {

// The last component of "a.b.c", and what is before it.
struct SplitName {
  std::string_view owner;
  std::string_view leaf;
};

SplitName Split(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {"", name};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

// Step sizes, A and B under the names of H3 and its baselines, and of BiGS.
bool IsSsm(std::string_view name) {
  constexpr std::array<std::string_view, 14> kLeaves = {
      "log_dt", "inv_dt",     "log_step", "inv_A_real", "A_real", "A_imag",      "A_re",
      "A_im",   "log_w_real", "w_imag",   "B",          "P",      "Lambda_real", "Lambda_imag"};
  return std::find(kLeaves.begin(), kLeaves.end(), Split(name).leaf) != kLeaves.end();
}

bool IsNorm(std::string_view name) {
  const std::string_view owner = Split(Split(name).owner).leaf;
  return owner.find("norm") != std::string_view::npos ||
         owner.find("Norm") != std::string_view::npos || owner.starts_with("ln_");
}

}  // namespace

ParameterGroup GroupOf(const OptimizerOptions& options, ModelFamily family, std::string_view name) {
  const bool encoder = family == ModelFamily::kBigs;
  if (IsSsm(name) && (!encoder || options.ssm_rate.has_value())) {
    return {.ssm = true, .decays = options.ssm_decay};
  }
  const NoDecay no_decay = options.no_decay.value_or(NoDecay{.biases = encoder, .norms = encoder});
  const bool spared =
      (no_decay.biases && name.ends_with("bias")) || (no_decay.norms && IsNorm(name));
  return {.ssm = false, .decays = !spared};
}

double SsmRate(const OptimizerOptions& options) {
  return options.ssm_rate.value_or(std::min(options.rate, 1e-3));
}

}  // namespace hippodrome
