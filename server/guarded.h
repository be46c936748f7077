// The border between code that may throw, for want of memory most likely, and requests, which must
// end with an answer while the server goes on.
#ifndef HIPPODROME_SERVER_GUARDED_H_
#define HIPPODROME_SERVER_GUARDED_H_

#include <exception>
#include <string>

#include "absl/status/status.h"
#include "engine/base/status.h"
#include "kernels/device_error.h"

namespace hippodrome {

// What `work` returns, an absl::Status or StatusOr, or kInternal with what it throws. A
// DeviceError goes on: it is about more than one request.
template <typename Work>
auto Guarded(const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const DeviceError&) {
    throw;
  } catch (const std::exception& error) {
    return Internal(std::string("the request could not be finished: ") + error.what());
  }
}

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_GUARDED_H_
