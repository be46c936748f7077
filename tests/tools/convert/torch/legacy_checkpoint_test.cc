// Damaged and hostile files of the format before 1.6.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/status.h"
#include "tests/tools/convert/torch_builder.h"
#include "tests/tools/convert/zip_builder.h"

namespace hippodrome::legacy_checkpoint_test {
namespace {

using pickled::Dict;
using pickled::Storage;
using pickled::Tensor;
using pickled::Text;
using pickled::Whole;
using testing::ElementsAre;
using testing::HasSubstr;

std::string Pickle() {
  return Whole(Dict({Text("w"), Tensor(Storage("FloatStorage", "11", 2), 0, {2}, {1}), Text("x"),
                     Tensor(Storage("FloatStorage", "22", 3), 1, {2}, {1})}));
}

std::vector<StorageBytes> Storages() {
  return {{"22", Bytes({3, 4, 5}), 3}, {"11", Bytes({1, 2}), 2}};
}

TEST(LegacyCheckpointTest, ReadsStoragesInTheOrderOfTheirKeys) {
  const auto source = OpenBytes(LegacyFile(Pickle(), Storages()));
  ASSERT_TRUE(source.ok()) << Message(source.status());
  EXPECT_THAT(ReadAll(**source, 0), ElementsAre(1, 2));
  EXPECT_THAT(ReadAll(**source, 1), ElementsAre(4, 5));
}

TEST(LegacyCheckpointTest, EveryTruncationIsRefused) {
  const std::string file = LegacyFile(Pickle(), Storages());
  for (size_t size = 0; size < file.size(); ++size) {
    ASSERT_NE(OpenError(file.substr(0, size)), "OK") << size;
  }
}

TEST(LegacyCheckpointTest, RefusesAWrongMagicNumber) {
  std::string file = LegacyFile(Pickle(), Storages());
  file[5] ^= 1;
  EXPECT_THAT(OpenError(file), HasSubstr("is not a checkpoint"));
}

TEST(LegacyCheckpointTest, RefusesOtherVersions) {
  std::string file = LegacyFile(Pickle(), Storages());
  file[file.find("M\xe9\x03") + 1] = '\xea';
  EXPECT_THAT(OpenError(file), HasSubstr("version the integer 1002; expected 1001"));
}

TEST(LegacyCheckpointTest, RefusesBigEndianFiles) {
  std::string file = LegacyFile(Pickle(), Storages());
  file[file.find("little_endian") + 13] = '\x89';
  EXPECT_THAT(OpenError(file), HasSubstr("not marked as little-endian"));
}

TEST(LegacyCheckpointTest, RefusesCountsThatDisagree) {
  for (const uint64_t count : {uint64_t{1}, uint64_t{1} << 62, ~uint64_t{0}}) {
    std::vector<StorageBytes> storages = Storages();
    storages[0].elements = count;
    EXPECT_THAT(OpenError(LegacyFile(Pickle(), storages)),
                HasSubstr("storage '22' begins with the element count"));
  }
}

TEST(LegacyCheckpointTest, RefusesKeysThatAreMissingRepeatedOrUnknown) {
  std::vector<StorageBytes> missing = Storages();
  missing.pop_back();
  EXPECT_THAT(OpenError(LegacyFile(Pickle(), missing)), HasSubstr("storage '11' is missing"));
  std::vector<StorageBytes> repeated = Storages();
  repeated.push_back(repeated[0]);
  EXPECT_THAT(OpenError(LegacyFile(Pickle(), repeated)), HasSubstr("unknown or repeated key '22'"));
  std::vector<StorageBytes> unknown = Storages();
  unknown.push_back({"33", Bytes({1}), 1});
  EXPECT_THAT(OpenError(LegacyFile(Pickle(), unknown)), HasSubstr("unknown or repeated key '33'"));
}

TEST(LegacyCheckpointTest, RefusesAStorageDescribedInTwoWays) {
  const std::string pickle =
      Whole(Dict({Text("w"), Tensor(Storage("FloatStorage", "11", 2), 0, {2}, {1}), Text("x"),
                  Tensor(Storage("FloatStorage", "11", 3), 1, {2}, {1})}));
  EXPECT_THAT(OpenError(LegacyFile(pickle, {{"11", Bytes({1, 2}), 2}})),
              HasSubstr("described in two ways"));
}

TEST(LegacyCheckpointTest, RefusesDangerousGlobals) {
  const std::string attack =
      Whole(pickled::Call(pickled::Global("posix", "system"), {Text("true")}));
  EXPECT_THAT(OpenError(LegacyFile(attack, {})), HasSubstr("posix.system"));
}

}  // namespace
}  // namespace hippodrome::legacy_checkpoint_test
