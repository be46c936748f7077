// One device, which keeps what it has. This test runs where there is one.
#include "kernels/all_reduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/make_backend.h"

namespace hippodrome::all_reduce_test {
namespace {

TEST(AllReduceTest, RunsOnOneDeviceOrSaysWhatIsMissing) {
  const ChosenBackend chosen = MakeCudaBackend(0);
  if (chosen.backend == nullptr) GTEST_SKIP() << chosen.obstacle;
  EXPECT_GE(CountCudaDevices(), 1);
  TrainingBackend* const backends[] = {chosen.backend.get()};
  const ChosenAllReduce all_reduce = MakeCudaAllReduce(backends);
  if (all_reduce.all_reduce == nullptr) {
    EXPECT_THAT(all_reduce.obstacle, testing::StartsWith("cuda: load NCCL: libnccl.so.2: "));
    return;
  }
  OwnedTensor a = chosen.backend->NewTensor(2, 3), b = chosen.backend->NewTensor(1, 1);
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  chosen.backend->Upload(values, a);
  const Tensor tensors[] = {a, b};
  all_reduce.all_reduce->Begin(0, tensors);
  all_reduce.all_reduce->Finish(0);
  std::vector<float> sums(values.size());
  chosen.backend->Download(a, sums);
  EXPECT_EQ(sums, values);
}

}  // namespace
}  // namespace hippodrome::all_reduce_test
