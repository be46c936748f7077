#include "tools/convert/sharded_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "engine/base/status.h"
#include "tests/testing/temporary_directory.h"
#include "tests/tools/convert/model_file.h"
#include "tests/tools/convert/msgpack_builder.h"
#include "tests/tools/convert/torch_builder.h"

namespace hippodrome::sharded_checkpoint_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class ShardedCheckpointTest : public testing::Test {
 protected:
  ShardedCheckpointTest() {
    WriteShard("a.bin", {{"x", {{2}, {1, 2}}}, {"y", {{1}, {3}}}});
    WriteShard("b.bin", {{"z", {{1}, {4}}}});
  }

  void WriteShard(const std::string& name, const ModelFile& tensors) {
    std::vector<StorageBytes> storages;
    const std::string state = StateDict(tensors, storages);
    directory_.Write(name, ZipFile(pickled::Whole(state), storages));
  }
  // Opens the shards with an index of this weight_map.
  absl::StatusOr<std::unique_ptr<CheckpointSource>> Open(const nlohmann::json& weight_map) {
    return OpenCheckpoint(
        directory_.Write("all.bin.index.json", nlohmann::json{{"weight_map", weight_map}}.dump()));
  }
  std::string Error(const nlohmann::json& weight_map) {
    const auto source = Open(weight_map);
    if (source.ok()) return "OK";
    EXPECT_THAT(Message(source.status()), StartsWith(directory_.File("all.bin.index.json: ")));
    return Message(source.status());
  }

  TemporaryDirectory directory_;
};

TEST_F(ShardedCheckpointTest, HasTheTensorsOfAllShards) {
  const auto source = Open({{"x", "a.bin"}, {"y", "a.bin"}, {"z", "b.bin"}});
  ASSERT_TRUE(source.ok()) << Message(source.status());
  ASSERT_EQ((*source)->tensors().size(), 3u);
  EXPECT_EQ((*source)->tensors()[2].name, "z");
  EXPECT_THAT(ReadAll(**source, 0), ElementsAre(1, 2));
  EXPECT_THAT(ReadAll(**source, 2), ElementsAre(4));
  EXPECT_TRUE((*source)->Same(1, 1));
  EXPECT_FALSE((*source)->Same(1, 2));
  EXPECT_EQ((*source)->file_bytes(), std::filesystem::file_size(directory_.File("a.bin")) +
                                         std::filesystem::file_size(directory_.File("b.bin")));
}

TEST_F(ShardedCheckpointTest, MissingShardsAreNamed) {
  EXPECT_THAT(Error({{"x", "a.bin"}, {"y", "a.bin"}, {"z", "c.bin"}}),
              HasSubstr("shard 'c.bin' is missing; expected all files of weight_map beside the"));
  EXPECT_TRUE(absl::IsNotFound(Open({{"z", "c.bin"}}).status()));
}

TEST_F(ShardedCheckpointTest, NamesThatLeadElsewhereAreRefused) {
  for (const std::string name :
       {"../a.bin", "/etc/passwd", "sub/a.bin", "..", ".", "", "a\\b", "all.bin.index.json"}) {
    EXPECT_THAT(Error({{"x", name}}),
                HasSubstr("weight_map has tensor 'x' in '" + name +
                          "'; expected the name of a checkpoint file beside the index"));
  }
  EXPECT_THAT(Error({{"x", std::string("a.bin\0", 6)}}), HasSubstr("in 'a.bin?'; expected"));
  EXPECT_THAT(Error({{"x", std::string(256, 'a')}}), HasSubstr("expected the name of a"));
}

TEST_F(ShardedCheckpointTest, IndexAndShardsMustAgree) {
  EXPECT_THAT(Error({{"x", "a.bin"}, {"y", "b.bin"}, {"z", "b.bin"}}),
              HasSubstr("tensor 'y' is expected in shard 'b.bin'; it is in 'a.bin'"));
  EXPECT_THAT(Error({{"x", "a.bin"}, {"y", "a.bin"}, {"w", "b.bin"}, {"z", "b.bin"}}),
              HasSubstr("tensor 'w' is expected in shard 'b.bin'; it is in none"));
  EXPECT_THAT(Error({{"x", "a.bin"}, {"z", "b.bin"}}),
              HasSubstr("tensor 'y' of shard 'a.bin' is not in weight_map"));
  WriteShard("b.bin", {{"y", {{1}, {3}}}, {"z", {{1}, {4}}}});
  EXPECT_THAT(Error({{"x", "a.bin"}, {"y", "a.bin"}, {"z", "b.bin"}}),
              HasSubstr("tensor 'y' is in two shards, 'a.bin' and 'b.bin'"));
}

TEST_F(ShardedCheckpointTest, ShardsMustBeCheckpointsOfOneKind) {
  directory_.Write("b.bin", "nothing");
  EXPECT_THAT(Error({{"x", "a.bin"}, {"y", "a.bin"}, {"z", "b.bin"}}),
              HasSubstr(directory_.File("b.bin: is not a checkpoint")));
  directory_.Write("b.bin", msgpack::Tree({{"z", msgpack::FlaxArray({1}, "float32", Bytes({1}))}}));
  EXPECT_THAT(Error({{"x", "a.bin"}, {"y", "a.bin"}, {"z", "b.bin"}}),
              HasSubstr("shard 'b.bin' is of another kind than 'a.bin'"));
}

TEST_F(ShardedCheckpointTest, MalformedIndexesAreRefused) {
  EXPECT_THAT(Error(nlohmann::json::array()), HasSubstr("weight_map is missing or empty"));
  EXPECT_THAT(Error(nlohmann::json::object()), HasSubstr("weight_map is missing or empty"));
  EXPECT_THAT(Error({{"x", 3}}), HasSubstr("tensor 'x' in 3; expected the name of a file"));
  const std::string path = directory_.Write("all.bin.index.json", "{");
  EXPECT_THAT(Message(OpenCheckpoint(path).status()), StartsWith(path));
  nlohmann::json many;
  for (int i = 0; i < 129; ++i) many["t" + std::to_string(i)] = "f" + std::to_string(i);
  EXPECT_THAT(Error(many), HasSubstr("names 129 files; expected at most 128"));
}

}  // namespace
}  // namespace hippodrome::sharded_checkpoint_test
