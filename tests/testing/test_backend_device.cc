#include "tests/testing/test_backend.h"

namespace hippodrome {

ChosenBackend MakeTestBackend() { return MakeBackend(DeviceChoice::kCuda); }

bool TestBackendIsSlow() { return false; }

}  // namespace hippodrome
