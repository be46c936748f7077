// Any body is a call of /v1/completions or an error. The first byte chooses the route.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "server/json/json_requests.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string body(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 't':
      (void)hippodrome::ParseTokenize(body);
      break;
    case 'd':
      (void)hippodrome::ParseDetokenize(body);
      break;
    default: {
      const hippodrome::RequestLimits limits;
      const auto call = hippodrome::ParseCompletion(body, limits);
      if (call.ok() && call->requests.empty()) std::abort();
    }
  }
  return 0;
}
