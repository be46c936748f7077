#include "tools/convert/flax/flax_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <span>

#include "engine/base/status.h"
#include "tests/testing/temporary_directory.h"
#include "tests/tools/convert/msgpack_builder.h"
#include "tests/tools/convert/torch_builder.h"

namespace hippodrome::flax_writer_test {
namespace {

using msgpack::FlaxArray;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(FlaxWriterTest, WritesTheTree) {
  const TemporaryDirectory directory;
  std::vector<float> values(3 * 70);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  std::vector<float> transposed;
  for (size_t j = 0; j < 70; ++j) {
    for (size_t i = 0; i < 3; ++i) transposed.push_back(values[i * 70 + j]);
  }
  const std::vector<BF16> halves = {ToBF16(1), ToBF16(2)};
  const TensorView matrix{"matrix", DType::kF32, {3, 70}, std::as_bytes(std::span(values))};
  const TensorView vector{"vector", DType::kBF16, {2}, std::as_bytes(std::span(halves))};
  std::vector<std::string> written;
  const absl::Status status =
      WriteFlaxFile(directory.File("model.msgpack"),
                    {{.path = "b/c/kernel", .tensor = matrix, .transposed = true},
                     {.path = "b/a", .tensor = matrix},
                     {.path = "a", .tensor = vector}},
                    [&](const TensorView& tensor) { written.push_back(tensor.name); });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(written, ElementsAre("vector", "matrix", "matrix"));
  const std::string halves_bytes(reinterpret_cast<const char*>(halves.data()), 4);
  EXPECT_TRUE(FileContent(directory.File("model.msgpack")) ==
              msgpack::Tree({{"a", FlaxArray({2}, "bfloat16", halves_bytes)},
                             {"b/a", FlaxArray({3, 70}, "float32", Bytes(values))},
                             {"b/c/kernel", FlaxArray({70, 3}, "float32", Bytes(transposed))}}));
}

TEST(FlaxWriterTest, ArraysThatFlaxWouldCutAreRefused) {
  const TemporaryDirectory directory;
  const std::span<const std::byte> announced(reinterpret_cast<const std::byte*>("x"),
                                             (size_t{1} << 30) + 4);  // is not read
  const absl::Status status =
      WriteFlaxFile(directory.File("model.msgpack"),
                    {{.path = "a", .tensor = {"words", DType::kF32, {(1 << 28) + 1}, announced}}},
                    [](const TensorView&) {});
  EXPECT_THAT(Message(status),
              HasSubstr("tensor 'words' has 1073741828 bytes; expected at most 2^30"));
  EXPECT_FALSE(std::filesystem::exists(directory.File("model.msgpack")));
}

}  // namespace
}  // namespace hippodrome::flax_writer_test
