#include "tools/batch/batch_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/testing/temporary_directory.h"

namespace hippodrome::batch_job_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const json kJob = {{"task", "embed"}, {"seed", 0}};

TEST(BatchJobTest, BeginsGoesOnAndIsComplete) {
  const TemporaryDirectory folder;
  const JobFile job(folder.File("out"), kJob);
  EXPECT_FALSE(job.totals());
  EXPECT_FALSE(*job.Begin(0));
  EXPECT_FALSE(*job.Begin(12));
  EXPECT_FALSE(job.totals());
  ASSERT_TRUE(job.Complete({{3, 1}, 40, "abc"}).ok());
  EXPECT_TRUE(*job.Begin(40));
  EXPECT_EQ(job.totals()->counts.errors, 1);
  EXPECT_THAT(job.Begin(39).status().ToString(), HasSubstr("has 39 bytes, but had 40"));
  EXPECT_FALSE(*job.Begin(0));  // who removed the output wants it anew
  EXPECT_FALSE(job.totals());
}

TEST(BatchJobTest, WhatIsOfAnotherJobIsRefused) {
  const TemporaryDirectory folder;
  ASSERT_FALSE(*JobFile(folder.File("out"), kJob).Begin(0));
  json other = kJob;
  other["seed"] = 7;
  EXPECT_THAT(JobFile(folder.File("out"), other).Begin(5).status().ToString(),
              HasSubstr("seed: 0 then, 7 now"));
  EXPECT_FALSE(JobFile(folder.File("out"), other).totals());
  EXPECT_THAT(JobFile(folder.File("else"), kJob).Begin(5).status().ToString(),
              HasSubstr("no " + folder.File("else.job")));
  folder.Write("else.job", "{torn");
  EXPECT_FALSE(JobFile(folder.File("else"), kJob).Begin(5).ok());
}

TEST(BatchJobTest, TheLastShareWritesTheManifest) {
  const TemporaryDirectory folder;
  const std::string out = folder.File("out");
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_FALSE(*WriteManifest(out, 3, kJob));
    const std::string part = PartPath(out, {i, 3});
    folder.Write("out.part-0000" + std::to_string(i) + "-of-00003", "some text");
    ASSERT_TRUE(JobFile(part, kJob).Complete({{10, i}, 9, *ChecksumFile(part)}).ok());
  }
  EXPECT_TRUE(*WriteManifest(out, 3, kJob));
  const json manifest = json::parse(FileContent(folder.File("out.manifest.json")));
  EXPECT_EQ(manifest["lines"], 30);
  EXPECT_EQ(manifest["errors"], 3);
  EXPECT_EQ(manifest["parts"][2]["path"], "out.part-00002-of-00003");
  EXPECT_EQ(manifest["parts"][2]["errors"], 2);
  EXPECT_EQ(manifest["parts"][0]["xxh3"].get<std::string>().size(), 32);
  EXPECT_EQ(manifest["job"], kJob);
}

TEST(BatchJobTest, OneShareWritesTheOutputItself) { EXPECT_EQ(PartPath("a/b", {0, 1}), "a/b"); }

}  // namespace
}  // namespace hippodrome::batch_job_test
