#include "tests/testing/test_backend.h"

namespace hippodrome {

ChosenBackend MakeTestBackend() { return MakeBackend(DeviceChoice::kCpu, {.threads = 2}); }

bool TestBackendIsSlow() { return false; }

}  // namespace hippodrome
