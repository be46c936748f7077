#include "server/states/open_state_store.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/testing/state_stores.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::open_state_store_test {
namespace {

TEST(OpenStateStoreTest, ReadsAddressesOfRedis) {
  const RedisAddress address = ParseRedisAddress("redis://10.0.0.1:6380/3").value();
  EXPECT_EQ(ToText(address.server), "10.0.0.1:6380");
  EXPECT_EQ(address.database, 3);
  EXPECT_EQ(ParseRedisAddress("redis://localhost:6379").value().database, 0);
  EXPECT_EQ(ParseRedisAddress("redis://[::1]:6379/0").value().server.host, "::1");
  for (const char* wrong :
       {"redis://", "redis://host", "redis://host:0", "redis://host:1/", "redis://host:1/x",
        "redis://host:1/-1", "redis://host:1/1/2", "redis://host:65536", "http://host:1"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseRedisAddress(wrong).status())) << wrong;
  }
}

TEST(OpenStateStoreTest, OpensWhatIsAskedFor) {
  const TemporaryDirectory directory;
  StoreMetrics metrics;
  const StateBytes file = SmallStateFile(1);
  for (const std::string& place : {std::string("memory"), directory.File("states")}) {
    const auto store = OpenStateStore(place, 1 << 20, metrics.metrics());
    ASSERT_TRUE(store.ok()) << place;
    EXPECT_TRUE((*store)->Put("o", HandleOf("a"), file, std::chrono::seconds(60)).ok());
  }
  EXPECT_TRUE(std::filesystem::exists(directory.File("states")));
  EXPECT_TRUE(OpenStateStore("redis://127.0.0.1:1/0", 0, metrics.metrics()).ok())
      << "it connects later";
  EXPECT_FALSE(OpenStateStore("redis://127.0.0.1", 0, metrics.metrics()).ok());
  EXPECT_FALSE(OpenStateStore("", 0, metrics.metrics()).ok());
}

}  // namespace
}  // namespace hippodrome::open_state_store_test
