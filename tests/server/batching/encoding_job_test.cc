#include "server/batching/encoding_job.h"

#include <gtest/gtest.h>

#include <thread>

#include "engine/base/status.h"

namespace hippodrome::encoding_job_test {
namespace {

EncodingJob NewJob(size_t requests) {
  return EncodingJob({.requests = std::vector<EncoderRequest>(requests)},
                     EncodingJob::Clock::time_point());
}

EncoderOutput Output(float value) { return {.rows = 1, .cols = 1, .values = {value}}; }

TEST(EncodingJobTest, OutputsComeInTheOrderOfTheRequests) {
  EncodingJob job = NewJob(3);
  EXPECT_FALSE(job.Deliver(2, Output(2)));
  EXPECT_FALSE(job.Deliver(0, Output(0)));
  EXPECT_FALSE(job.Take());
  EXPECT_TRUE(job.Deliver(1, Output(1)));
  const auto outputs = job.Take();
  ASSERT_TRUE(outputs && outputs->ok());
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ((**outputs)[i].values[0], static_cast<float>(i));
  EXPECT_FALSE(job.Take());
}

TEST(EncodingJobTest, WakesOnceWhenItIsReady) {
  EncodingJob job = NewJob(2);
  int wakes = 0;
  job.OnReady([&] { ++wakes; });
  job.Deliver(0, Output(0));
  EXPECT_EQ(wakes, 0);
  job.Deliver(1, Output(1));
  EXPECT_EQ(wakes, 1);
  job.Fail(absl::CancelledError());
  EXPECT_EQ(wakes, 1);
}

TEST(EncodingJobTest, WakesAtOnceIfItIsReady) {
  EncodingJob job = NewJob(1);
  job.Deliver(0, Output(0));
  int wakes = 0;
  job.OnReady([&] { ++wakes; });
  EXPECT_EQ(wakes, 1);
}

TEST(EncodingJobTest, AFailureEndsIt) {
  EncodingJob job = NewJob(2);
  job.Deliver(0, Output(0));
  job.Fail(Unavailable("the end"));
  EXPECT_FALSE(job.Deliver(1, Output(1)));
  const auto outputs = job.Take();
  ASSERT_TRUE(outputs);
  EXPECT_TRUE(absl::IsUnavailable(outputs->status()));
}

TEST(EncodingJobTest, NobodyIsWokenAfterOnReadyReturned) {
  for (int i = 0; i < 200; ++i) {
    EncodingJob job = NewJob(1);
    auto alive = std::make_unique<int>(0);
    job.OnReady([&] { ++*alive; });
    std::thread writer([&] { job.Deliver(0, Output(0)); });
    job.OnReady(nullptr);
    alive.reset();  // a wake from now on would use it after its end
    writer.join();
  }
}

}  // namespace
}  // namespace hippodrome::encoding_job_test
