// Data parallel training between CPU backends.
#include "tools/train/session/replicas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>

#include "engine/base/status.h"
#include "kernels/make_backend.h"
#include "tests/testing/temporary_directory.h"
#include "tests/testing/thread_ranks.h"
#include "tests/tools/train/replica_run.h"

namespace hippodrome::replicas_test {
namespace {

// Sums on the host, in the order of the backends, when all have called.
class HostAllReduce final : public AllReduce {
  struct WhenAllHave {
    HostAllReduce* all_reduce;
    void operator()() const noexcept { all_reduce->SumAll(); }
  };

 public:
  explicit HostAllReduce(std::vector<TrainingBackend*> backends)
      : backends_(std::move(backends)),
        given_(backends_.size()),
        called_(std::ssize(backends_), WhenAllHave{this}) {}

  void Begin(size_t r, std::span<const Tensor> tensors) override {
    given_[r].assign(tensors.begin(), tensors.end());
    called_.arrive_and_wait();
  }
  void Finish(size_t /*r*/) override {}

 private:
  void SumAll() {
    for (size_t t = 0; t < given_[0].size(); ++t) {
      std::vector<float> sum(static_cast<size_t>(given_[0][t].rows * given_[0][t].cols));
      std::vector<float> part(sum.size());
      for (size_t r = 0; r < backends_.size(); ++r) {
        backends_[r]->Download(given_[r][t], part);
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
      }
      for (size_t r = 0; r < backends_.size(); ++r) backends_[r]->Upload(sum, given_[r][t]);
    }
  }

  const std::vector<TrainingBackend*> backends_;
  std::vector<std::vector<Tensor>> given_;  // by each backend
  std::barrier<WhenAllHave> called_;
};

// A file of tensors without any.
std::string NoTensors() { return std::string("\x02\0\0\0\0\0\0\0{}", 10); }

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
  cpus.devices.on_processor = count == 1;
  return cpus;
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

// ---- Ranks -------------------------------------------------------------------------------------

// A processor of one rank; a few buckets for each parameter.
RunDevices OfRank(Communicator& ranks) {
  RunDevices devices = MakeCpus(1).devices;
  devices.ranks = &ranks;
  devices.bucket_values = 100;
  return devices;
}

TrainingRun SmallRun(bool sharded) {
  TrainingRun run = hippodrome::SmallRun();
  run.shard_optimizer = sharded;
  return run;
}

TEST(ReplicasTest, RanksHaveTheBitsOfOneProcess) {
  RunDevices alone = MakeCpus(1).devices;
  alone.bucket_values = 100;
  ReplicaRun one(std::move(alone));
  std::vector<double> losses;
  for (int step = 0; step < 3; ++step) losses.push_back(one.Step());
  const std::vector<std::vector<float>> expected = one.State(0);
  for (const int count : {1, 2, 3, 4}) {
    for (const bool sharded : {false, true}) {
      RunRanks(count, [&](Communicator& ranks) {
        ReplicaRun run(SmallRun(sharded), OfRank(ranks));
        for (const double loss : losses) EXPECT_EQ(run.Step(), loss) << count << " ranks";
        const auto state = run.State(0);
        if (ranks.rank() == 0) {
          EXPECT_EQ(state, expected) << count << " ranks, sharded " << sharded;
        }
      });
    }
  }
}

// Rank 0 alone sees the folder.
TEST(ReplicasTest, RanksResumeTheCheckpointOfAnotherNumberOfThem) {
  const TemporaryDirectory directory;
  std::vector<double> losses(2);
  RunRanks(3, [&](Communicator& ranks) {
    ReplicaRun run(SmallRun(true), OfRank(ranks));
    run.Step();
    Replica& replica = run.replicas().at(0);
    const auto read = [&](size_t i) { return replica.ReadState(i); };
    if (ranks.rank() == 0) {
      ASSERT_TRUE(
          SaveTrainingState(directory.path(), {.step = 1}, replica.StateArrays(), read).ok());
    } else {
      for (size_t i = 0; i < replica.StateArrays().size(); ++i) ASSERT_TRUE(read(i).ok());
    }
    for (double& loss : losses) {
      const double of_all = run.Step();
      if (ranks.rank() == 0) loss = of_all;
    }
  });
  for (const int count : {1, 2}) {
    for (const bool sharded : {false, true}) {
      RunRanks(count, [&](Communicator& ranks) {
        ReplicaRun run(SmallRun(sharded), OfRank(ranks));
        run.Resume(ranks.rank() == 0 ? directory.path() : "", 1);
        for (const double loss : losses) EXPECT_EQ(run.Step(), loss);
      });
    }
  }
}

TEST(ReplicasTest, ACheckpointThatCannotBeReadIsAnErrorOfAllRanks) {
  RunRanks(2, [&](Communicator& ranks) {
    ReplicaRun run(SmallRun(true), OfRank(ranks));
    const TemporaryDirectory directory;
    const std::string file = directory.Write("state.safetensors", NoTensors());
    LoadedTrainingState nothing;
    nothing.file = SafetensorsFile::Open(file).value();
    const absl::Status status = run.replicas().Restore(ranks.rank() == 0 ? &nothing : nullptr);
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(Message(status), testing::StartsWith("rank 0 (here): "));
  });
}

TEST(ReplicasTest, RanksShareTheEvaluation) {
  ReplicaRun one(MakeCpus(1).devices);
  const BatchLoss expected = one.Evaluate(5);
  for (const int count : {2, 3}) {
    RunRanks(count, [&](Communicator& ranks) {
      ReplicaRun run(OfRank(ranks));
      const BatchLoss loss = run.Evaluate(5);
      EXPECT_EQ(loss.sum, expected.sum);
      EXPECT_EQ(loss.judged, expected.judged);
    });
  }
}

}  // namespace
}  // namespace hippodrome::replicas_test
