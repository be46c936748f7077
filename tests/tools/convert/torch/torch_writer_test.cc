#include "tools/convert/torch/torch_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <span>

#include "engine/base/status.h"
#include "tests/testing/temporary_directory.h"
#include "tests/tools/convert/torch_builder.h"
#include "tools/convert/checkpoint_source.h"

namespace hippodrome::torch_writer_test {
namespace {

using testing::ElementsAre;

template <typename Value>
TensorView View(const std::string& name, DType dtype, const std::vector<int64_t>& shape,
                const std::vector<Value>& values) {
  return {.name = name, .dtype = dtype, .shape = shape, .data = std::as_bytes(std::span(values))};
}

TEST(TorchWriterTest, IsReadAsItWasWritten) {
  const TemporaryDirectory directory;
  const std::vector<float> matrix = {1, 2, 3, 4, 5, 6};
  const std::vector<BF16> rounded = {ToBF16(0.5F), ToBF16(-2)};
  const std::vector<uint16_t> halves = {0x3c00};
  const std::vector<double> doubles = {0.25};
  const std::vector<int64_t> ids = {7};
  const std::vector<TensorView> tensors = {
      View("matrix", DType::kF32, {2, 3}, matrix), View("rounded", DType::kBF16, {2, 1}, rounded),
      View("half", DType::kF16, {1}, halves),      View("double", DType::kF64, {}, doubles),
      View("ids", DType::kI64, {1}, ids),          View("tied", DType::kF32, {2, 3}, matrix)};
  std::vector<std::string> written;
  const absl::Status status =
      WriteTorchFile(directory.File("model.pt"), tensors,
                     [&](const TensorView& tensor) { written.push_back(tensor.name); });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(written, ElementsAre("matrix", "rounded", "half", "double", "ids"));

  const auto source = OpenCheckpoint(directory.File("model.pt"));
  ASSERT_TRUE(source.ok()) << Message(source.status());
  ASSERT_EQ((*source)->tensors().size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ((*source)->tensors()[i].name, tensors[i].name);
    EXPECT_EQ((*source)->tensors()[i].shape, tensors[i].shape);
  }
  EXPECT_EQ((*source)->tensors()[4].type, "LongStorage");
  EXPECT_EQ(ReadAll(**source, 0), matrix);
  EXPECT_THAT(ReadAll(**source, 1), ElementsAre(0.5, -2));
  EXPECT_THAT(ReadAll(**source, 2), ElementsAre(1));
  EXPECT_THAT(ReadAll(**source, 3), ElementsAre(0.25));
  EXPECT_TRUE((*source)->Same(0, 5));
  EXPECT_FALSE((*source)->Same(0, 1));
}

}  // namespace
}  // namespace hippodrome::torch_writer_test
