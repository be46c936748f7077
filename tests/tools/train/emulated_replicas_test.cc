// Data parallel training between two CUDA devices of the emulator.
#include <gtest/gtest.h>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/nccl/nccl_all_reduce.h"
#include "kernels/make_backend.h"
#include "tests/tools/train/replica_run.h"

namespace hippodrome::emulated_replicas_test {
namespace {

// Each backend is within 1e-5 of the published gradients, relative to the largest of a tensor.
constexpr double kTolerance = 2e-5;

struct Cudas {
  RunDevices devices;
  TrainingBackend* first = nullptr;
};

Cudas MakeCudas(int count) {
  Cudas cudas;
  std::vector<cuda::Device*> devices;
  for (int i = 0; i < count; ++i) {
    auto backend = std::make_unique<CudaBackend>(i);
    devices.push_back(&backend->device());
    cudas.devices.backends.push_back(std::move(backend));
  }
  cudas.devices.all_reduce = cuda::MakeNcclAllReduce(devices);
  cudas.first = cudas.devices.backends[0].get();
  cudas.first->BindThread();
  return cudas;
}

TEST(EmulatedReplicasTest, TrainAsOneCpu) {
  cuda_on_cpu::SetDeviceCount(2);
  RunDevices cpu;
  cpu.backends.push_back(MakeCpuBackend({.threads = 1}));
  cpu.on_processor = true;
  TrainingBackend& cpu_backend = *cpu.backends[0];
  ReplicaRun expected(std::move(cpu));
  const double loss = expected.Learn().mean();
  for (const int count : {1, 2}) {
    Cudas cudas = MakeCudas(count);
    ReplicaRun actual(std::move(cudas.devices));
    EXPECT_NEAR(actual.Learn().mean(), loss, 1e-5) << count;
    EXPECT_LE(GradientDifference(expected, cpu_backend, actual, *cudas.first), kTolerance) << count;
    EXPECT_NEAR(actual.Step(), loss, 1e-5) << count;
    actual.ExpectReplicasAreTheSame();
  }
}

}  // namespace
}  // namespace hippodrome::emulated_replicas_test
