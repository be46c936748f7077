// Where there is no NCCL. This program is given no place to find one.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cuda/nccl/nccl_all_reduce.h"

namespace hippodrome::cuda::no_nccl_test {
namespace {

TEST(NoNcclTest, IsAnErrorThatNamesTheLibrary) {
  if (dlopen("libnccl.so.2", RTLD_NOW) != nullptr) GTEST_SKIP() << "this machine has it";
  Device device;
  Device* const devices[] = {&device};
  try {
    MakeNcclAllReduce(devices);
    FAIL() << "no error";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), testing::StartsWith("cuda: load NCCL: libnccl.so.2: "));
  }
}

}  // namespace
}  // namespace hippodrome::cuda::no_nccl_test
