#include "engine/state/saved_state.h"

#include <fmt/format.h>

#include "kernels/cpu_instruction_set.h"

namespace hippodrome {

std::string Arithmetic(const SequenceBackend& backend, DType weights) {
  const std::string name = backend.name();
  return fmt::format("{}{}{} {}", name, name == "cpu" ? " " : "",
                     name == "cpu" ? CpuInstructionSet() : "",
                     weights == DType::kBF16 ? "bf16" : "f32");
}

}  // namespace hippodrome
