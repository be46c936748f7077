// The host code that sums by NCCL, with the library of tests/cuda_on_cpu in its place.
#include "kernels/cuda/nccl/nccl_all_reduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "kernels/cuda/base/tensor_memory.h"

namespace hippodrome::cuda::nccl_all_reduce_test {
namespace {

OwnedTensor Filled(Device& device, int64_t rows, int64_t cols, const std::vector<float>& values) {
  OwnedTensor tensor = NewMatrix(device, rows, cols, DType::kF32);
  CopyIn(device, values, tensor);
  return tensor;
}

std::vector<float> Values(Device& device, Tensor tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.rows * tensor.cols));
  CopyOut(device, tensor, values);
  return values;
}

class NcclAllReduceTest : public testing::Test {
 protected:
  void SetUp() override { cuda_on_cpu::SetDeviceCount(2); }
  void TearDown() override {
    cudaSetDevice(0);
    cuda_on_cpu::SetDeviceCount(1);
  }
};

// What a call throws; each device has a thread of its own.
std::string Thrown(const std::function<void()>& call) {
  try {
    call();
  } catch (const DeviceError& failure) {
    return failure.what();
  }
  return "none";
}
std::vector<std::string> SumOverTwo(AllReduce& all_reduce,
                                    std::span<const std::vector<Tensor>> tensors) {
  std::vector<std::string> errors(2);
  const auto sum = [&](size_t r) {
    cudaSetDevice(static_cast<int>(r));
    errors[r] = Thrown([&] {
      for (const Tensor& tensor : tensors[r]) all_reduce.Begin(r, {&tensor, 1});
      all_reduce.Finish(r);
    });
  };
  std::thread second([&] { sum(1); });
  sum(0);
  second.join();
  return errors;
}

TEST_F(NcclAllReduceTest, SumsOverTwoDevices) {
  Device first(0), second(1);
  Device* const devices[] = {&first, &second};
  const auto all_reduce = MakeNcclAllReduce(devices);
  OwnedTensor a = Filled(first, 2, 2, {1, 2, 3, 4}), b = Filled(first, 1, 3, {5, 6, 7});
  OwnedTensor c = Filled(second, 2, 2, {10, 20, 30, 40}), d = Filled(second, 1, 3, {1, 1, 1});
  const std::vector<Tensor> tensors[] = {{a.view.Rows(1, 1), b}, {c.view.Rows(1, 1), d}};
  EXPECT_THAT(SumOverTwo(*all_reduce, tensors), testing::Each("none"));
  EXPECT_EQ(Values(first, a), (std::vector<float>{1, 2, 33, 44}));
  EXPECT_EQ(Values(second, c), (std::vector<float>{10, 20, 33, 44}));
  EXPECT_EQ(Values(first, b), (std::vector<float>{6, 7, 8}));
  EXPECT_EQ(Values(second, d), (std::vector<float>{6, 7, 8}));
}

// Threads stand for processes.
TEST_F(NcclAllReduceTest, SumsOverProcessesThatJoin) {
  const std::string id = NewNcclId();
  const auto process = [&](int rank) {
    Device device(rank);
    const auto all_reduce = JoinNcclAllReduce(device, id, rank, 2);
    OwnedTensor a = Filled(device, 1, 2, {1.0f + 9 * static_cast<float>(rank), 2});
    const Tensor tensors[] = {a};
    all_reduce->Begin(0, tensors);
    all_reduce->Begin(0, tensors);
    all_reduce->Finish(0);
    EXPECT_EQ(Values(device, a), (std::vector<float>{22, 8}));
  };
  std::thread other([&] { process(1); });
  process(0);
  other.join();
}

TEST_F(NcclAllReduceTest, OneDeviceKeepsWhatItHas) {
  Device device;
  Device* const devices[] = {&device};
  const auto all_reduce = MakeNcclAllReduce(devices);
  OwnedTensor a = Filled(device, 1, 2, {1, 2});
  const Tensor tensors[] = {a, NewMatrix(device, 0, 3, DType::kF32)};
  all_reduce->Begin(0, tensors);
  all_reduce->Finish(0);
  EXPECT_EQ(Values(device, a), (std::vector<float>{1, 2}));
}

TEST_F(NcclAllReduceTest, AFailureNamesTheOperation) {
  Device first(0), again(0), second(1);
  Device* const twice[] = {&first, &again};
  EXPECT_EQ(Thrown([&] { MakeNcclAllReduce(twice); }), "cuda: join devices: NCCL: invalid usage");
  Device* const devices[] = {&first, &second};
  const auto all_reduce = MakeNcclAllReduce(devices);
  OwnedTensor a = Filled(first, 1, 2, {1, 2}), c = Filled(second, 1, 3, {1, 2, 3});
  const std::vector<Tensor> other_shapes[] = {{a}, {c}};
  EXPECT_THAT(SumOverTwo(*all_reduce, other_shapes),
              testing::Each("cuda: sum gradients: NCCL: invalid usage"));
  OwnedTensor b = Filled(second, 1, 2, {3, 4});
  const std::vector<Tensor> both[] = {{a}, {b}};
  EXPECT_THAT(SumOverTwo(*all_reduce, both), testing::Each("none"));
  EXPECT_EQ(Values(first, a), (std::vector<float>{4, 6}));
}

}  // namespace
}  // namespace hippodrome::cuda::nccl_all_reduce_test
