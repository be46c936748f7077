// Damaged and hostile zip files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/status.h"
#include "tests/tools/convert/torch_builder.h"
#include "tests/tools/convert/zip_builder.h"

namespace hippodrome::zip_checkpoint_test {
namespace {

using pickled::Dict;
using pickled::Storage;
using pickled::Tensor;
using pickled::Text;
using pickled::Whole;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kHuge = uint64_t{1} << 63;

std::string Pickle() {
  return Whole(Dict({Text("w"), Tensor(Storage("FloatStorage", "0", 2), 0, {2}, {1})}));
}

std::string GoodFile() { return ZipFile(Pickle(), {{"0", Bytes({1, 2}), 2}}); }

TEST(ZipCheckpointTest, ReadsAGoodFile) {
  const auto source = OpenBytes(GoodFile());
  ASSERT_TRUE(source.ok()) << Message(source.status());
  EXPECT_THAT(ReadAll(**source, 0), ElementsAre(1, 2));
}

TEST(ZipCheckpointTest, EveryTruncationIsRefused) {
  const std::string file = GoodFile();
  for (size_t size = 0; size < file.size(); ++size) {
    ASSERT_NE(OpenError(file.substr(0, size)), "OK") << size;
  }
}

TEST(ZipCheckpointTest, DamagedDataFailsItsChecksum) {
  std::string file = GoodFile();
  file[file.find(Bytes({1, 2}))] ^= 1;
  const auto source = OpenBytes(file);
  ASSERT_TRUE(source.ok());
  std::vector<float> values(2);
  const absl::Status status = (*source)->Read(0, 0, values);
  EXPECT_THAT(Message(status), HasSubstr("tensor 'w': damaged zip entry"));
}

TEST(ZipCheckpointTest, RefusesCompressedEntries) {
  ZipBuilder zip;
  zip.Add("top/data.pkl", Pickle());
  zip.Add({"top/data/0", std::string(10, 'x'), 8, 1'000'000'000, 10});
  EXPECT_THAT(OpenError(zip.Build()),
              HasSubstr("'top/data/0' is compressed (10 to 1000000000 bytes)"));
}

TEST(ZipCheckpointTest, RefusesSizesBeyondTheFile) {
  ZipBuilder zip;
  zip.Add("top/data.pkl", Pickle());
  zip.Add({"top/data/0", Bytes({1, 2}), 0, 1'000'000'000, 1'000'000'000});
  EXPECT_THAT(OpenError(zip.Build()), HasSubstr("claims 1000000000 bytes"));
  for (const uint64_t size : {kHuge, kHuge - 1, ~uint64_t{0}}) {
    ZipBuilder huge;
    huge.Add("top/data.pkl", Pickle());
    huge.Add({"top/data/0", Bytes({1, 2}), 0, size, size});
    EXPECT_NE(OpenError(huge.Build()), "OK");
  }
}

TEST(ZipCheckpointTest, RefusesRepeatedNames) {
  ZipBuilder zip;
  zip.Add("top/data.pkl", Pickle()).Add("top/data/0", Bytes({1, 2}));
  zip.Add("top/data/0", Bytes({3, 4}));
  EXPECT_THAT(OpenError(zip.Build()), HasSubstr("two zip entries named 'top/data/0'"));
}

TEST(ZipCheckpointTest, RefusesArchivesOfAnotherKind) {
  EXPECT_THAT(OpenError(ZipBuilder().Add("readme.txt", "hello").Build()),
              HasSubstr("has no data.pkl"));
  EXPECT_THAT(OpenError(ZipBuilder().Add("a/data.pkl", "x").Add("b/data.pkl", "x").Build()),
              HasSubstr("more than one data.pkl"));
  EXPECT_THAT(OpenError(ZipBuilder().Add("a/data.pkl", Pickle()).Add("a/byteorder", "big").Build()),
              HasSubstr("not little-endian"));
}

TEST(ZipCheckpointTest, RefusesAPickleThatIsTooLarge) {
  ZipBuilder zip;
  zip.Add("top/data.pkl", std::string((size_t{32} << 20) + 1, 'x'));
  EXPECT_THAT(OpenError(zip.Build()), HasSubstr("expected at most 33554432"));
}

TEST(ZipCheckpointTest, MissingFilesAndOtherFormatsAreNamed) {
  const auto missing = OpenCheckpoint("/no/such/model.pt");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(missing.status()), HasSubstr("/no/such/model.pt"));
  EXPECT_THAT(OpenError("GGUF and more"), HasSubstr("is not a checkpoint"));
  EXPECT_THAT(OpenError(""), HasSubstr("is not a checkpoint"));
}

}  // namespace
}  // namespace hippodrome::zip_checkpoint_test
