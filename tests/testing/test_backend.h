// The backend that a test program is about, chosen when the program is linked: the CPU's, the CUDA
// backend under the emulator, or the CUDA backend on a device.
#ifndef HIPPODROME_TESTS_TESTING_TEST_BACKEND_H_
#define HIPPODROME_TESTS_TESTING_TEST_BACKEND_H_

#include "kernels/make_backend.h"

namespace hippodrome {

// Without a backend the obstacle says why, and the test is to be skipped.
ChosenBackend MakeTestBackend();
// Whether it is a thousand times slower than others, so that a test takes fewer tokens.
bool TestBackendIsSlow();

}  // namespace hippodrome

// Declares `name`, a std::unique_ptr<TrainingBackend>, or skips the test.
#define HIPPODROME_TEST_BACKEND(name)                                           \
  ChosenBackend name##_choice = MakeTestBackend();                              \
  if (name##_choice.backend == nullptr) GTEST_SKIP() << name##_choice.obstacle; \
  const std::unique_ptr<TrainingBackend> name = std::move(name##_choice.backend)

#endif  // HIPPODROME_TESTS_TESTING_TEST_BACKEND_H_
