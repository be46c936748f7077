#include "server/batching/fair_queue.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace hippodrome::fair_queue_test {
namespace {

using Queue = FairQueue<std::string>;

std::vector<std::string> Items(const Queue& queue) {
  std::vector<std::string> items;
  for (const Queue::Entry* entry : queue.Line()) items.push_back(entry->item);
  return items;
}

std::string TakeFirst(Queue& queue) { return queue.Take(*queue.Line().front()); }

using Line = std::vector<std::string>;

TEST(FairQueueTest, OneCallKeepsItsOrder) {
  Queue queue;
  for (const char* item : {"c", "a", "b"}) queue.Add("x", 1, 1, item);
  EXPECT_EQ(Items(queue), (Line{"c", "a", "b"}));
  EXPECT_EQ(queue.size(), 3u);
}

TEST(FairQueueTest, CallsOfOneClientTakeTurns) {
  Queue queue;
  for (const char* item : {"a1", "a2", "a3"}) queue.Add("x", 1, 1, item);
  for (const char* item : {"b1", "b2"}) queue.Add("x", 2, 1, item);
  EXPECT_EQ(Items(queue), (Line{"a1", "b1", "a2", "b2", "a3"}));
}

TEST(FairQueueTest, ClientsTakeTurnsHoweverManyCallsTheyHave) {
  Queue queue;
  for (uint64_t call = 0; call < 3; ++call) queue.Add("x", call, 1, "x" + std::to_string(call));
  queue.Add("y", 7, 1, "y0");
  queue.Add("y", 8, 1, "y1");
  EXPECT_EQ(Items(queue), (Line{"x0", "y0", "x1", "y1", "x2"}));
}

TEST(FairQueueTest, TurnsAreMeasuredByCost) {
  Queue queue;
  for (int i = 0; i < 2; ++i) queue.Add("large", 1, 3, "L" + std::to_string(i));
  for (int i = 0; i < 5; ++i) queue.Add("small", 2, 1, "s" + std::to_string(i));
  EXPECT_EQ(Items(queue), (Line{"L0", "s0", "s1", "s2", "L1", "s3", "s4"}));
}

TEST(FairQueueTest, WhoComesLateIsNotPaidForThePast) {
  Queue queue;
  for (int i = 0; i < 100; ++i) queue.Add("x", 1, 1, "x");
  for (int i = 0; i < 50; ++i) TakeFirst(queue);
  for (int i = 0; i < 10; ++i) queue.Add("y", 2, 1, "y");
  std::string turns;
  while (turns.size() < 6) turns += TakeFirst(queue);
  EXPECT_EQ(turns, "xyxyxy");
}

TEST(FairQueueTest, WhatIsTakenOutOfOrderCounts) {
  Queue queue;
  for (int i = 0; i < 3; ++i) queue.Add("x", 1, 1, "x" + std::to_string(i));
  for (int i = 0; i < 3; ++i) queue.Add("y", 2, 1, "y" + std::to_string(i));
  queue.Take(*queue.Line()[3]);
  EXPECT_EQ(Items(queue), (Line{"x0", "x1", "y0", "x2", "y2"}));
}

TEST(FairQueueTest, WhatIsRemovedDoesNotCount) {
  Queue queue;
  for (const char* item : {"x0", "gone", "x1"}) queue.Add("x", 1, 1, item);
  for (const char* item : {"y0", "gone", "y1"}) queue.Add("y", 2, 1, item);
  EXPECT_EQ(queue.RemoveIf([](const std::string& item) { return item == "gone"; }).size(), 2u);
  EXPECT_EQ(Items(queue), (Line{"x0", "y0", "x1", "y1"}));
}

// Two clients that always wait get the same, whatever their items cost.
TEST(FairQueueTest, ShareOfClientsThatAlwaysWaitDiffersByOneItem) {
  std::mt19937 random(1);
  Queue queue;
  const double largest = 50;
  std::map<std::string, double> served;
  const auto add = [&](const std::string& client) {
    const double most = client == "x" ? 5 : largest;
    queue.Add(client, random() % 3, 1 + static_cast<double>(random() % 1000) / 1000 * (most - 1),
              client);
  };
  for (int i = 0; i < 8; ++i) add(i % 2 == 0 ? "x" : "y");
  for (int i = 0; i < 20000; ++i) {
    const Queue::Entry* first = queue.Line().front();
    served[first->client()] += first->cost();
    add(queue.Take(*first));
    ASSERT_LE(std::abs(served["x"] - served["y"]), largest);
  }
}

// A large item waits while new clients, and new calls of its own client, come for ever.
TEST(FairQueueTest, AStreamOfNewcomersStarvesNobody) {
  for (const bool own_calls : {false, true}) {
    Queue queue;
    constexpr int kWaiting = 64;
    int next = 0;
    const auto newcomer = [&] {
      ++next;
      queue.Add(own_calls ? "victim" : "client " + std::to_string(next), 1000 + next, 1, "small");
    };
    queue.Add("victim", 1, 100, "large");
    queue.Add("victim", 1, 100, "victim's");
    while (queue.size() < kWaiting) newcomer();
    int services = 0;
    for (std::string item; item != "victim's"; ++services) {
      item = TakeFirst(queue);
      newcomer();
      ASSERT_LE(services, kWaiting * 100 + kWaiting * 100);  // n (T - V) / c, and who was there
    }
    EXPECT_GT(services, 100);
  }
}

// What is kept of clients that have left is bounded by what they were served.
TEST(FairQueueTest, ManyClientsComeAndGo) {
  Queue queue;
  queue.Add("stays", 1, 1e9, "large");
  for (int i = 0; i < 100000; ++i) {
    queue.Add("client " + std::to_string(i), static_cast<uint64_t>(i), 1, "small");
    queue.Take(*queue.Line().back());
  }
  EXPECT_EQ(queue.clients(), 1u);
  EXPECT_LT(queue.known_clients(), 200u);
}

}  // namespace
}  // namespace hippodrome::fair_queue_test
