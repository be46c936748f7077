#include "server/http/connection_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace hippodrome::connection_table_test {
namespace {

class ConnectionTableTest : public testing::Test {
 protected:
  // Null where it was refused.
  std::unique_ptr<ConnectionTable::Place> Admit(const std::string& name,
                                                const std::string& address) {
    return table_.Admit(address, [this, name] { closed_.push_back(name); }).place;
  }

  ConnectionTable table_{{.connections = 3, .per_address = 2}};
  std::vector<std::string> closed_;
};

TEST_F(ConnectionTableTest, TheOneThatWaitsLongestMakesRoom) {
  const auto a = Admit("a", "1");
  const auto b = Admit("b", "2");
  const auto c = Admit("c", "3");
  EXPECT_TRUE(a->Enter(ConnectionPhase::kAnswering));
  EXPECT_TRUE(a->Enter(ConnectionPhase::kWaiting));
  EXPECT_TRUE(b->Enter(ConnectionPhase::kAnswering));
  const auto d = Admit("d", "4");
  EXPECT_NE(d, nullptr);
  EXPECT_EQ(closed_, std::vector<std::string>{"c"});
  EXPECT_FALSE(c->Enter(ConnectionPhase::kReading));
  EXPECT_EQ(table_.size(), 3);
}

TEST_F(ConnectionTableTest, RequestsInProgressStay) {
  std::vector<std::unique_ptr<ConnectionTable::Place>> places;
  for (const char* address : {"1", "2", "3"}) {
    places.push_back(Admit(address, address));
    EXPECT_TRUE(places.back()->Enter(ConnectionPhase::kAnswering));
  }
  const auto refused = table_.Admit("4", [] {});
  EXPECT_EQ(refused.place, nullptr);
  EXPECT_FALSE(refused.address_full);
  EXPECT_FALSE(table_.Evict());
  places.pop_back();
  EXPECT_NE(Admit("d", "4"), nullptr);
  EXPECT_TRUE(closed_.empty());
}

TEST_F(ConnectionTableTest, ARequestThatTakesLongToComeMakesRoomToo) {
  const auto a = Admit("a", "1");
  EXPECT_TRUE(a->Enter(ConnectionPhase::kReading));
  EXPECT_FALSE(table_.Evict());
  std::this_thread::sleep_for(ConnectionTable::kSafe);
  EXPECT_TRUE(table_.Evict());
  EXPECT_EQ(closed_, std::vector<std::string>{"a"});
}

// Else those who dribble would drive out whoever comes, before it could say anything.
TEST_F(ConnectionTableTest, ANewcomerStaysWhereARequestTakesLongToCome) {
  const auto slow = Admit("slow", "1");
  EXPECT_TRUE(slow->Enter(ConnectionPhase::kReading));
  std::this_thread::sleep_for(ConnectionTable::kSafe);
  const auto newcomer = Admit("newcomer", "2");
  EXPECT_TRUE(table_.Evict());
  EXPECT_EQ(closed_, std::vector<std::string>{"slow"});
  EXPECT_TRUE(table_.Evict());
  EXPECT_EQ(closed_, (std::vector<std::string>{"slow", "newcomer"}));
}

TEST_F(ConnectionTableTest, AnAddressMakesRoomAmongItsOwn) {
  const auto other = Admit("other", "2");
  const auto a = Admit("a", "1");
  const auto b = Admit("b", "1");
  const auto c = Admit("c", "1");
  EXPECT_NE(c, nullptr);
  EXPECT_EQ(closed_, std::vector<std::string>{"a"});
  EXPECT_TRUE(b->Enter(ConnectionPhase::kAnswering));
  EXPECT_TRUE(c->Enter(ConnectionPhase::kAnswering));
  const auto refused = table_.Admit("1", [] {});
  EXPECT_EQ(refused.place, nullptr);
  EXPECT_TRUE(refused.address_full);
  EXPECT_EQ(closed_.size(), 1u);
}

// As a connection does that nobody else holds any more.
TEST_F(ConnectionTableTest, ClosingMayLeaveTheTable) {
  std::unique_ptr<ConnectionTable::Place> place;
  place = table_.Admit("1", [&] { place.reset(); }).place;
  table_.CloseAll();
  EXPECT_EQ(table_.size(), 0);
  place = table_.Admit("1", [&] { place.reset(); }).place;
  EXPECT_TRUE(table_.Evict());
  EXPECT_EQ(table_.size(), 0);
}

TEST_F(ConnectionTableTest, AllCanBeGivenUp) {
  const auto a = Admit("a", "1");
  const auto b = Admit("b", "2");
  EXPECT_TRUE(b->Enter(ConnectionPhase::kAnswering));
  table_.CloseAll();
  EXPECT_EQ(closed_, (std::vector<std::string>{"a", "b"}));
}

}  // namespace
}  // namespace hippodrome::connection_table_test
