// Any bytes are a state or an error, also with the checksum that belongs to them; what is a state
// is the same one when it is written and read again.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "engine/state/state_file.h"
#include "tests/testing/saved_states.h"
#include "tests/testing/state_file_parts.h"

namespace hippodrome {
namespace {

void Read(const std::string& bytes) {
  const StateLayout layout = SmallStateLayout();
  const auto state = ReadStateFile(bytes, layout);
  if (!state.ok()) return;
  const auto written = WriteStateFile(*state, layout);
  if (!written.ok() || !SummarizeStateFile(*written).ok()) std::abort();
  const auto again = ReadStateFile(*written, layout);
  if (!again.ok() || *again != *state) std::abort();
}

}  // namespace
}  // namespace hippodrome

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  hippodrome::Read(bytes);
  const auto index = hippodrome::ParseSafetensors(std::as_bytes(std::span(bytes)));
  if (!index.ok()) return 0;
  hippodrome::StateFileParts parts(*index);
  hippodrome::Read(parts.Sealed());
  return 0;
}
