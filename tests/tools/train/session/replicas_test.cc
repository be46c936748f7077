// Data parallel training between CPU backends.
#include "tools/train/session/replicas.h"

#include <gtest/gtest.h>

#include "kernels/make_backend.h"
#include "tests/testing/temporary_directory.h"
#include "tests/tools/train/replica_run.h"

namespace hippodrome::replicas_test {
namespace {

// Sums on the host, in the order of the backends.
class HostAllReduce final : public AllReduce {
 public:
  explicit HostAllReduce(std::vector<TrainingBackend*> backends) : backends_(std::move(backends)) {}

  void Sum(std::span<const std::vector<Tensor>> tensors) override {
    for (size_t t = 0; t < tensors[0].size(); ++t) {
      std::vector<float> sum(static_cast<size_t>(tensors[0][t].rows * tensors[0][t].cols));
      std::vector<float> part(sum.size());
      for (size_t r = 0; r < backends_.size(); ++r) {
        backends_[r]->Download(tensors[r][t], part);
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
      }
      for (size_t r = 0; r < backends_.size(); ++r) backends_[r]->Upload(sum, tensors[r][t]);
    }
  }

 private:
  std::vector<TrainingBackend*> backends_;
};

struct Cpus {
  RunDevices devices;
  TrainingBackend* first = nullptr;
};

Cpus MakeCpus(size_t count) {
  Cpus cpus;
  std::vector<TrainingBackend*> backends;
  for (size_t i = 0; i < count; ++i) {
    cpus.devices.backends.push_back(MakeCpuBackend({.threads = 1}));
    backends.push_back(cpus.devices.backends.back().get());
  }
  cpus.first = backends[0];
  if (count > 1) cpus.devices.all_reduce = std::make_unique<HostAllReduce>(backends);
  return cpus;
}

TEST(ReplicasTest, SharesAreWholeMicroBatchesAndEverySequenceHasOne) {
  for (const int64_t sequences : {1, 7, 8, 12}) {
    for (size_t count = 1; count <= 5; ++count) {
      int64_t next = 0;
      int64_t fewest = sequences;
      int64_t most = 0;
      for (size_t i = 0; i < count; ++i) {
        const Share share = ShareOf(sequences, 2, i, count);
        EXPECT_EQ(share.begin, next);
        EXPECT_TRUE(share.begin % 2 == 0 || share.begin == sequences);
        next = share.end;
        const int64_t parts = (share.end - share.begin + 1) / 2;
        fewest = std::min(fewest, parts);
        most = std::max(most, parts);
      }
      EXPECT_EQ(next, sequences);
      EXPECT_LE(most - fewest, 1);
    }
  }
}

// All runs add the same terms, at most B T = 40 for a weight, in another order: 40 roundings of
// 2^-24 of a sum of magnitudes, which may be a few times the largest sum.
TEST(ReplicasTest, GradientsAreThoseOfOneDevice) {
  constexpr double kTolerance = 4 * 40.0 / (1 << 24);
  Cpus cpu = MakeCpus(1);
  ReplicaRun one(std::move(cpu.devices));
  const BatchLoss expected = one.Learn();
  for (const size_t count : {2, 3, 4}) {
    Cpus cpus = MakeCpus(count);
    ReplicaRun several(std::move(cpus.devices));
    const BatchLoss loss = several.Learn();
    EXPECT_EQ(loss.terms, expected.terms);
    EXPECT_NEAR(loss.sum, expected.sum, 1e-14 * expected.sum);
    EXPECT_LE(GradientDifference(one, *cpu.first, several, *cpus.first), kTolerance) << count;
  }
}

// A step of AdamW turns a relative error of a gradient into one of its step of 1e-3, which moves
// the loss by that error times the gradient: below single precision of the whole.
TEST(ReplicasTest, TrainsAsOneDevice) {
  ReplicaRun one(MakeCpus(1).devices);
  ReplicaRun three(MakeCpus(3).devices);
  for (int step = 0; step < 6; ++step) {
    const double expected = one.Step();
    EXPECT_NEAR(three.Step(), expected, 1e-6 * expected) << "step " << step;
  }
  three.ExpectReplicasAreTheSame();
}

TEST(ReplicasTest, ACheckpointIsResumedOnAnotherNumberOfDevices) {
  const TemporaryDirectory directory;
  ReplicaRun one(MakeCpus(1).devices);
  one.Step();
  one.Step();
  Replica& replica = one.replicas().at(0);
  ASSERT_TRUE(
      SaveTrainingState(directory.path(), {.step = 2}, replica.StateArrays(), [&](size_t i) {
        return replica.ReadState(i);
      }).ok());
  ReplicaRun two(MakeCpus(2).devices);
  two.Resume(directory.path(), 2);
  EXPECT_EQ(two.State(0), one.State(0));
  two.ExpectReplicasAreTheSame();
  const double expected = one.Step();
  EXPECT_NEAR(two.Step(), expected, 1e-14 * expected);
}

}  // namespace
}  // namespace hippodrome::replicas_test
