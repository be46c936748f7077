// Any text is a valid config.json of an encoder or an error; what is accepted is written and read
// again unchanged.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "engine/config/bigs_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  (void)hippodrome::ParseModelFamily(text);
  const auto config = hippodrome::ParseBigsConfig(text);
  if (!config.ok()) return 0;
  const auto again = hippodrome::ParseBigsConfig(hippodrome::ToJson(*config));
  if (!again.ok() || hippodrome::ToJson(*again) != hippodrome::ToJson(*config)) std::abort();
  return 0;
}
