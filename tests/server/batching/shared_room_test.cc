#include "server/batching/shared_room.h"

#include <gtest/gtest.h>

#include <string>

namespace hippodrome::shared_room_test {
namespace {

// Takes one unit after the other for as long as it may.
int64_t TakeAll(SharedRoom& room, const std::string& client) {
  int64_t taken = 0;
  while (!room.Full(1) && !room.Exceeds(client, 1)) {
    room.Add(client, 1);
    ++taken;
  }
  return taken;
}

TEST(SharedRoomTest, OneClientTakesItsShareAndNoMore) {
  SharedRoom room(256, 0.75);
  EXPECT_EQ(TakeAll(room, "a"), 192);
  EXPECT_FALSE(room.Full(64));
  EXPECT_TRUE(room.Full(65));
}

TEST(SharedRoomTest, SeveralClientsThatWantEverythingLeaveRoomForAnother) {
  SharedRoom room(256, 0.75);
  for (const char* client : {"a", "b", "c"}) {
    EXPECT_GT(TakeAll(room, client), 0);
  }
  EXPECT_FALSE(room.Full(1));
  EXPECT_FALSE(room.Exceeds("d", 1));
}

TEST(SharedRoomTest, WithTheWholeAsShareTheFirstTakesEverything) {
  SharedRoom room(3, 1);
  EXPECT_EQ(TakeAll(room, "a"), 3);
  EXPECT_TRUE(room.Full(1));
}

TEST(SharedRoomTest, WithoutAShareEachHasOneAtATime) {
  SharedRoom room(10, 0);
  EXPECT_EQ(TakeAll(room, "a"), 1);
  EXPECT_EQ(TakeAll(room, "b"), 1);
}

TEST(SharedRoomTest, WhatIsGivenBackIsThereAgain) {
  SharedRoom room(4, 0.5);
  EXPECT_EQ(TakeAll(room, "a"), 2);
  room.Remove("a", 2);
  EXPECT_EQ(room.held(), 0);
  EXPECT_EQ(TakeAll(room, "a"), 2);
}

TEST(SharedRoomTest, WhatIsLargerThanEverythingFitsIntoNothing) {
  SharedRoom room(4, 0.5);
  EXPECT_FALSE(room.Full(10));
  EXPECT_FALSE(room.Exceeds("a", 10));
  room.Add("a", 10);
  EXPECT_TRUE(room.Full(1));
}

}  // namespace
}  // namespace hippodrome::shared_room_test
