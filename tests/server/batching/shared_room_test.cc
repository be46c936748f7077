#include "server/batching/shared_room.h"

#include <gtest/gtest.h>

#include <string>

namespace hippodrome::shared_room_test {
namespace {

Caller From(const std::string& client) { return {Api::kHttp, client}; }

Caller Background(const std::string& client) {
  Caller caller = From(client);
  caller.background = true;
  return caller;
}

// Takes one unit after the other for as long as it may.
int64_t TakeAll(SharedRoom& room, const Caller& caller) {
  int64_t taken = 0;
  while (!room.Full(1) && !room.Exceeds(caller, 1)) {
    room.Add(caller, 1);
    ++taken;
  }
  return taken;
}

TEST(SharedRoomTest, OneClientTakesItsShareAndNoMore) {
  SharedRoom room(256, 0.75);
  EXPECT_EQ(TakeAll(room, From("a")), 192);
  EXPECT_FALSE(room.Full(64));
  EXPECT_TRUE(room.Full(65));
}

TEST(SharedRoomTest, SeveralClientsThatWantEverythingLeaveRoomForAnother) {
  SharedRoom room(256, 0.75);
  for (const char* client : {"a", "b", "c"}) {
    EXPECT_GT(TakeAll(room, From(client)), 0);
  }
  EXPECT_FALSE(room.Full(1));
  EXPECT_FALSE(room.Exceeds(From("d"), 1));
}

TEST(SharedRoomTest, WithTheWholeAsShareTheFirstTakesEverything) {
  SharedRoom room(3, 1);
  EXPECT_EQ(TakeAll(room, From("a")), 3);
  EXPECT_TRUE(room.Full(1));
}

TEST(SharedRoomTest, WithoutAShareEachHasOneAtATime) {
  SharedRoom room(10, 0);
  EXPECT_EQ(TakeAll(room, From("a")), 1);
  EXPECT_EQ(TakeAll(room, From("b")), 1);
}

TEST(SharedRoomTest, WhatIsGivenBackIsThereAgain) {
  SharedRoom room(4, 0.5);
  EXPECT_EQ(TakeAll(room, From("a")), 2);
  room.Remove(From("a"), 2);
  EXPECT_EQ(room.held(), 0);
  EXPECT_EQ(TakeAll(room, From("a")), 2);
}

TEST(SharedRoomTest, WhatIsLargerThanEverythingFitsIntoNothing) {
  SharedRoom room(4, 0.5);
  EXPECT_FALSE(room.Full(10));
  EXPECT_FALSE(room.Exceeds(From("a"), 10));
  room.Add(From("a"), 10);
  EXPECT_TRUE(room.Full(1));
}

TEST(SharedRoomTest, TheBackgroundTakesHalfWhoeverItIsFor) {
  SharedRoom room(256, 0.75);
  EXPECT_EQ(TakeAll(room, Background("a")), 128);
  EXPECT_EQ(TakeAll(room, Background("b")), 0);
  EXPECT_GT(TakeAll(room, From("a")), 0) << "what a client has in the background is not its own";
  EXPECT_FALSE(room.Full(1));
  EXPECT_FALSE(room.Exceeds(From("c"), 1));
}

TEST(SharedRoomTest, TheBackgroundLeavesOthersAsMuchAsItHolds) {
  SharedRoom room(256, 0.75);
  EXPECT_EQ(TakeAll(room, From("a")), 192);
  EXPECT_EQ(TakeAll(room, Background("a")), 32);
  EXPECT_GT(TakeAll(room, From("b")), 0);
  room.Remove(Background("b"), 32);
  EXPECT_GT(TakeAll(room, Background("b")), 0);
}

TEST(SharedRoomTest, RefusalsSayWhoseRoomIsFull) {
  EXPECT_STREQ(RefusalOf(From("a"), true).reason, "queue_full");
  EXPECT_STREQ(RefusalOf(From("a"), false).reason, "client_share");
  EXPECT_STREQ(RefusalOf(Background("a"), true).reason, "queue_full");
  EXPECT_STREQ(RefusalOf(Background("a"), false).reason, "background_share");
}

}  // namespace
}  // namespace hippodrome::shared_room_test
