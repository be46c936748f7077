// Any text is a valid config.json or an error; what is accepted is written and read again
// unchanged.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "engine/config/config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto config = hippodrome::ParseH3Config(text);
  if (!config.ok()) return 0;
  const auto again = hippodrome::ParseH3Config(hippodrome::ToJson(*config));
  if (!again.ok() || hippodrome::ToJson(*again) != hippodrome::ToJson(*config)) std::abort();
  return 0;
}
