#include "server/batching/class_queue.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hippodrome::class_queue_test {
namespace {

struct Item {
  std::string name;
  bool background = false;
};
using Queue = ClassQueue<Item>;

void Add(Queue& queue, const std::string& client, const std::string& name, bool background) {
  Caller caller(Api::kHttp, client);
  caller.background = background;
  queue.Add(caller, 1, {name, background});
}

std::vector<std::string> Names(const Queue& queue) {
  std::vector<std::string> names;
  for (const Queue::Entry* entry : queue.Line()) names.push_back(entry->item.name);
  return names;
}

using Line = std::vector<std::string>;

TEST(ClassQueueTest, EachClassIsFairAndTheBackgroundIsBehind) {
  Queue queue;
  for (const char* name : {"job 1", "job 2"}) Add(queue, "x", name, true);
  Add(queue, "y", "another job", true);
  for (const char* name : {"x1", "x2"}) Add(queue, "x", name, false);
  Add(queue, "y", "y1", false);
  EXPECT_EQ(Names(queue), (Line{"x1", "y1", "x2", "job 1", "another job", "job 2"}));
  EXPECT_EQ(queue.size(), 6u);
  EXPECT_EQ(queue.interactive().size(), 3u);
  EXPECT_EQ(queue.background().size(), 3u);
}

TEST(ClassQueueTest, WhatIsServedInOneClassIsNotOwedInTheOther) {
  Queue queue;
  for (const char* name : {"job 1", "job 2", "job 3"}) Add(queue, "x", name, true);
  for (int i = 0; i < 2; ++i) queue.Take(*queue.Line().front());
  Add(queue, "x", "x1", false);
  Add(queue, "y", "y1", false);
  EXPECT_EQ(Names(queue), (Line{"x1", "y1", "job 3"}));
}

TEST(ClassQueueTest, EntriesLeaveTheirOwnClass) {
  Queue queue;
  for (const char* name : {"a", "gone", "b"}) Add(queue, "x", name, false);
  for (const char* name : {"c", "gone", "d"}) Add(queue, "x", name, true);
  EXPECT_EQ(queue.RemoveIf([](const Item& item) { return item.name == "gone"; }).size(), 2u);
  EXPECT_EQ(queue.Remove(*queue.Line()[2]).name, "c");
  EXPECT_EQ(queue.Take(*queue.Line()[1]).name, "b");
  EXPECT_EQ(Names(queue), (Line{"a", "d"}));
}

}  // namespace
}  // namespace hippodrome::class_queue_test
