#include "tools/train/step/parameter_blocks.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/make_backend.h"

namespace hippodrome::parameter_blocks_test {
namespace {

// Each row of what is trained is in one block, buckets are as full as rows let them be, and the
// last parameter comes first.
TEST(ParameterBlocksTest, BucketsHoldEveryRowOnce) {
  const auto backend = MakeCpuBackend({.threads = 1});
  Parameters parameters(*backend);
  const auto add = [&](const std::string& name, int64_t rows, int64_t cols) {
    parameters.Add(name, {rows, cols}, std::vector<float>(static_cast<size_t>(rows * cols)));
  };
  add("a", 9, 4);
  add("untrained", 2, 2);
  add("layer.rotary_emb.inv_freq", 1, 2);
  add("b", 1, 3);
  add("c", 2, 30);
  std::vector<OwnedTensor> gradients;
  for (Parameter& p : parameters.all()) {
    if (p.name == "untrained") continue;
    gradients.push_back(backend->NewTensor(p.value.view.rows, p.value.view.cols));
    p.gradient = gradients.back();
  }
  const std::vector<Bucket> buckets = TrainedBuckets(parameters, 10);
  std::map<std::string, int64_t> next;
  std::vector<int64_t> sizes;
  for (const Bucket& bucket : buckets) {
    sizes.push_back(SizeOf(bucket));
    for (const ParameterBlock& block : bucket) {
      EXPECT_EQ(block.row, next[block.parameter->name]);
      next[block.parameter->name] += block.rows;
    }
  }
  EXPECT_EQ(next, (std::map<std::string, int64_t>{{"a", 9}, {"b", 1}, {"c", 2}}));
  EXPECT_EQ(sizes, (std::vector<int64_t>{30, 30, 7, 8, 8, 8, 8}));
  EXPECT_EQ(buckets[2][0].parameter->name, "b");
}

}  // namespace
}  // namespace hippodrome::parameter_blocks_test
