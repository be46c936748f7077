#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_backend.h"
#include "tests/cuda_on_cpu/runtime_watch.h"

namespace hippodrome::step_graph_test {
namespace {

// What the DeviceError of `run` says; empty without one.
template <typename Run>
std::string FailureOf(const Run& run) {
  try {
    run();
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "";
}

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

// Whatever it throws: a capture that is left open would take in all that follows.
TEST_F(StepGraphTest, AnyExceptionWhileItIsRecordedLeavesTheStreamUsable) {
  backend_.Fill(1, one_.view);
  int calls = 0;
  const auto work = [&] {
    backend_.Add(one_.view, x_.view);
    if (++calls == 2) throw std::bad_alloc();
  };
  backend_.Replay(graph_, work);
  EXPECT_THROW(backend_.Replay(graph_, work), std::bad_alloc);
  EXPECT_EQ(Values(), std::vector<float>(4, 1.0f));
  backend_.Replay(graph_, work);
  EXPECT_EQ(Values(), std::vector<float>(4, 2.0f));
}

// Waiting spoils a capture, which its end tells.
TEST_F(StepGraphTest, ACaptureThatEndsWithAnErrorDoesNothingAndSaysSo) {
  backend_.Fill(1, one_.view);
  int calls = 0;
  const auto work = [&] {
    backend_.Add(one_.view, x_.view);
    if (++calls == 2) cudaStreamSynchronize(backend_.device().stream());
  };
  backend_.Replay(graph_, work);
  backend_.Replay(graph_, work);
  EXPECT_THAT(FailureOf([&] { backend_.Wait(); }), testing::StartsWith("cuda: step graph: "));
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(Values(), std::vector<float>(4, 1.0f));
  for (int i = 0; i < 2; ++i) backend_.Replay(graph_, work);
  EXPECT_EQ(Values(), std::vector<float>(4, 3.0f));
  EXPECT_EQ(calls, 3);
}

TEST_F(StepGraphTest, AGraphThatCannotBeInstantiatedIsCapturedAgain) {
  backend_.Fill(1, one_.view);
  int calls = 0;
  const auto work = [&] {
    ++calls;
    backend_.Add(one_.view, x_.view);
  };
  backend_.Replay(graph_, work);
  cuda_on_cpu::FailNextInstantiation(cudaErrorMemoryAllocation);
  backend_.Replay(graph_, work);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(FailureOf([&] { backend_.Wait(); }),
            std::string("cuda: step graph: ") + cudaGetErrorString(cudaErrorMemoryAllocation));
  EXPECT_EQ(Values(), std::vector<float>(4, 1.0f));
  for (int i = 0; i < 2; ++i) backend_.Replay(graph_, work);
  EXPECT_EQ(Values(), std::vector<float>(4, 3.0f));
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace hippodrome::step_graph_test
