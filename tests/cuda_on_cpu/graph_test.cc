#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "tests/cuda_on_cpu/device_array.h"
#include "tests/cuda_on_cpu/runtime_watch.h"

namespace cuda_on_cpu {
namespace {

__global__ void AddOne(float* x) { *x += 1; }

class GraphTest : public ::testing::Test {
 protected:
  GraphTest() { ThrowIfFailed(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~GraphTest() override { cudaStreamDestroy(stream_); }

  void Begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
    ThrowIfFailed(cudaStreamBeginCapture(stream_, mode));
  }
  cudaGraphExec_t End() {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    ThrowIfFailed(cudaStreamEndCapture(stream_, &graph));
    ThrowIfFailed(cudaGraphGetNodes(graph, nullptr, &nodes_));
    ThrowIfFailed(cudaGraphInstantiate(&executable, graph));
    ThrowIfFailed(cudaGraphDestroy(graph));
    return executable;
  }
  void SubmitAddOne() {
    ThrowIfFailed(LaunchKernel(stream_, "add_one", AddOne, 1, 1, 0, false, x_.data()));
  }

  cudaStream_t stream_ = nullptr;
  DeviceArray<float> x_{std::vector<float>{10}};
  size_t nodes_ = 0;
};

TEST_F(GraphTest, CapturesAndReplays) {
  ResetLaunchCounts();
  float from = 1;
  float to = 0;
  Begin();
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  EXPECT_EQ(cudaStreamIsCapturing(stream_, &status), cudaSuccess);
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  cudaMemcpyAsync(x_.data(), &from, 4, cudaMemcpyHostToDevice, stream_);
  SubmitAddOne();
  SubmitAddOne();
  cudaMemcpyAsync(&to, x_.data(), 4, cudaMemcpyDeviceToHost, stream_);
  const cudaGraphExec_t graph = End();
  EXPECT_EQ(nodes_, 4u);
  EXPECT_EQ(LaunchCount(), 0);
  EXPECT_EQ(to, 0.0f) << "captured, not done";

  from = 5;  // host memory is read at replay
  EXPECT_EQ(cudaGraphLaunch(graph, stream_), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(to, 7.0f);
  from = 6;
  EXPECT_EQ(cudaGraphLaunch(graph, stream_), cudaSuccess);
  EXPECT_EQ(to, 8.0f);
  EXPECT_EQ(LaunchCount("add_one"), 4);
  EXPECT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);

  SubmitAddOne();
  EXPECT_EQ(x_.values()[0], 9.0f) << "the stream works as before";
}

TEST_F(GraphTest, AGraphBecomesPartOfAnother) {
  Begin();
  SubmitAddOne();
  const cudaGraphExec_t inner = End();
  Begin();
  EXPECT_EQ(cudaGraphLaunch(inner, stream_), cudaSuccess);
  SubmitAddOne();
  const cudaGraphExec_t outer = End();
  EXPECT_EQ(x_.values()[0], 10.0f);
  cudaGraphExecDestroy(inner);
  EXPECT_EQ(cudaGraphLaunch(outer, stream_), cudaSuccess);
  EXPECT_EQ(x_.values()[0], 12.0f);
  cudaGraphExecDestroy(outer);
}

TEST_F(GraphTest, WhatWaitsSpoilsACapture) {
  void* memory = nullptr;
  const std::function<cudaError_t()> calls[] = {
      [&] { return cudaMalloc(&memory, 4); }, [&] { return cudaFree(nullptr); },
      [&] { return cudaStreamSynchronize(stream_); }, [&] { return cudaDeviceSynchronize(); },
      [&] { return cudaMemcpy(&memory, x_.data(), 4, cudaMemcpyDeviceToHost); }};
  for (const auto& call : calls) {
    Begin();
    SubmitAddOne();
    EXPECT_EQ(call(), cudaErrorStreamCaptureUnsupported);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(call(), cudaSuccess);
    cudaFree(memory);
    memory = nullptr;
  }
  cudaGetLastError();
}

TEST_F(GraphTest, ModesSayWhoMayAllocate) {
  const auto allocate_elsewhere = [] {
    cudaError_t error = cudaSuccess;
    std::thread([&] {
      void* memory = nullptr;
      error = cudaMalloc(&memory, 4);
      if (error == cudaSuccess) error = cudaFree(memory);
    }).join();
    return error;
  };
  cudaGraph_t graph = nullptr;
  Begin(cudaStreamCaptureModeGlobal);
  EXPECT_EQ(allocate_elsewhere(), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
  Begin(cudaStreamCaptureModeThreadLocal);
  EXPECT_EQ(allocate_elsewhere(), cudaSuccess);
  cudaGraphExecDestroy(End());
  Begin(cudaStreamCaptureModeRelaxed);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  cudaGraphExecDestroy(End());
  cudaGetLastError();
}

TEST_F(GraphTest, EventsTellTime) {
  cudaEvent_t start = nullptr;
  cudaEvent_t end = nullptr;
  EXPECT_EQ(cudaEventCreate(&start), cudaSuccess);
  EXPECT_EQ(cudaEventCreate(&end), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(start, stream_), cudaSuccess);
  SubmitAddOne();
  EXPECT_EQ(cudaEventRecord(end, stream_), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(end), cudaSuccess);
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaSuccess);
  EXPECT_GE(milliseconds, 0.0f);
  cudaEventDestroy(start);
  cudaEventDestroy(end);
}

TEST_F(GraphTest, InstantiationFailsOnceWhenItIsAskedTo) {
  Begin();
  SubmitAddOne();
  cudaGraph_t graph = nullptr;
  ThrowIfFailed(cudaStreamEndCapture(stream_, &graph));
  cudaGraphExec_t executable = nullptr;
  FailNextInstantiation(cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGraphInstantiate(&executable, graph), cudaErrorMemoryAllocation);
  EXPECT_EQ(executable, nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGraphInstantiate(&executable, graph), cudaSuccess);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

}  // namespace
}  // namespace cuda_on_cpu
