#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "kernels/cuda/cuda_backend.h"

namespace hippodrome::step_graph_test {
namespace {

class StepGraphTest : public testing::Test {
 protected:
  std::vector<float> Values() {
    std::vector<float> values(4);
    backend_.Download(x_.view, values);
    return values;
  }

  CudaBackend backend_;
  OwnedTensor x_ = backend_.NewTensor(1, 4);
  OwnedTensor one_ = backend_.NewTensor(1, 4);
  std::unique_ptr<Graph> graph_;
};

TEST_F(StepGraphTest, RepeatsWhatItRecorded) {
  backend_.Fill(1, one_.view);
  int calls = 0;
  for (int i = 0; i < 5; ++i) {
    backend_.Replay(graph_, [&] {
      ++calls;
      backend_.Add(one_.view, x_.view);
    });
  }
  EXPECT_EQ(Values(), std::vector<float>(4, 5.0f));
  EXPECT_EQ(calls, 2);
}

// Memory cannot be allocated while a graph is captured.
TEST_F(StepGraphTest, WorkThatThrowsWhileItIsRecordedLeavesTheStreamUsable) {
  backend_.Fill(1, one_.view);
  int calls = 0;
  const auto work = [&] {
    backend_.Add(one_.view, x_.view);
    if (++calls == 2) cuda::AllocateZeroed(backend_.device(), 64);
  };
  backend_.Replay(graph_, work);
  EXPECT_THROW(backend_.Replay(graph_, work), DeviceError);
  EXPECT_EQ(Values(), std::vector<float>(4, 1.0f));
  for (int i = 0; i < 3; ++i) backend_.Replay(graph_, work);
  EXPECT_EQ(Values(), std::vector<float>(4, 4.0f));
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace hippodrome::step_graph_test
