#include "engine/passes/index_matrices.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/device_error.h"
#include "kernels/make_backend.h"
#include "tools/compare/forwarding_backend.h"

namespace hippodrome::index_matrices_test {
namespace {

class IndexMatricesTest : public testing::Test {
 protected:
  std::vector<int32_t> Values(size_t number) const {
    const Tensor x = indices_[number];
    std::vector<int32_t> values(static_cast<size_t>(x.rows * x.cols));
    backend_->DownloadIndices(x, values);
    return values;
  }

  const std::unique_ptr<Backend> backend_ = MakeCpuBackend({.threads = 1});
  IndexMatrices indices_{*backend_};
};

TEST_F(IndexMatricesTest, EachIsWhatWasAdded) {
  const std::vector<int32_t> row = {5};
  std::vector<int32_t> table(3 * 7);
  std::iota(table.begin(), table.end(), 100);
  EXPECT_EQ(indices_.Add(row), 0u);
  EXPECT_EQ(indices_.Add({}), 1u);
  EXPECT_EQ(indices_.Add(table, 3), 2u);
  indices_.Upload();
  EXPECT_EQ(Values(0), row);
  EXPECT_EQ(indices_[1].rows, 1);
  EXPECT_EQ(indices_[1].cols, 0);
  EXPECT_EQ(indices_[2].rows, 3);
  EXPECT_EQ(indices_[2].cols, 7);
  EXPECT_EQ(Values(2), table);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(indices_[i].data) % 64, 0u) << i;
  }
}

TEST_F(IndexMatricesTest, NumbersStartAnewBehindAnUpload) {
  const std::vector<int32_t> first = {1, 2}, second = {3};
  indices_.Add(first);
  indices_.Upload();
  EXPECT_EQ(indices_.Add(second), 0u);
  EXPECT_EQ(Values(0), first);  // until it is uploaded
  indices_.Upload();
  EXPECT_EQ(Values(0), second);
}

TEST_F(IndexMatricesTest, StayWhereTheyLieUnlessTheyNeedMoreRoom) {
  const std::vector<int32_t> few(20), many(40);
  indices_.Add(few);
  EXPECT_TRUE(indices_.Upload());
  const void* const data = indices_[0].data;
  indices_.Add(few);
  EXPECT_FALSE(indices_.Upload());
  EXPECT_EQ(indices_[0].data, data);
  indices_.Add(many);
  EXPECT_TRUE(indices_.Upload(100));
  indices_.Add(few);
  indices_.Add(many);
  EXPECT_FALSE(indices_.Upload());  // 80, with borders
}

class FailingBackend final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;

  OwnedTensor NewIndices(int64_t rows, int64_t cols) override {
    if (std::exchange(fails, false)) throw DeviceError("no memory");
    return ForwardingBackend::NewIndices(rows, cols);
  }

  bool fails = false;
};

TEST_F(IndexMatricesTest, AnUploadThatFailedLeavesNothing) {
  FailingBackend backend(*backend_);
  IndexMatrices indices(backend);
  const std::vector<int32_t> few(20), many(40);
  indices.Add(few);
  indices.Upload();
  indices.Add(many);
  backend.fails = true;
  EXPECT_THROW(indices.Upload(), DeviceError);
  EXPECT_EQ(indices.Add(few), 0u);
  EXPECT_TRUE(indices.Upload());
  indices.Add(few);
  EXPECT_FALSE(indices.Upload()) << "as long as what was added alone";
}

}  // namespace
}  // namespace hippodrome::index_matrices_test
