#include "server/batching/admission.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace hippodrome::admission_test {
namespace {

constexpr Footprint kEverything{1000, 1000, 1000000};
constexpr AdmissionLimits kUnlimited{kEverything, kEverything};

constexpr AdmissionLimits OfClients(const Footprint& limit) { return {limit, kEverything}; }
constexpr AdmissionLimits OfBackground(const Footprint& limit) { return {kEverything, limit}; }

Claim Need(int64_t pages, int64_t ticks, std::string_view client = "c") {
  return {{1, pages, 100 + 10 * pages}, ticks, client};
}

Claim Behind(int64_t pages, int64_t ticks) {
  Claim claim = Need(pages, ticks, "job");
  claim.background = true;
  return claim;
}

Footprint Room(int64_t slots, int64_t pages) { return {slots, pages, 100 * slots + 10 * pages}; }

using Places = std::vector<size_t>;

TEST(AdmitTest, TakesAllThatFitInOrder) {
  const std::vector<Claim> line = {Need(2, 10), Need(3, 10), Need(1, 10)};
  const Admission admission = Admit(line, {}, Room(3, 6), kUnlimited, false);
  EXPECT_EQ(admission.starting, (Places{0, 1, 2}));
  EXPECT_FALSE(admission.promised);
}

TEST(AdmitTest, SlotsPagesAndBytesAllCount) {
  const std::vector<Claim> running = {Need(0, 5)};
  EXPECT_TRUE(Admit({{Need(1, 9)}}, running, {0, 9, 1000}, kUnlimited, false).starting.empty());
  EXPECT_TRUE(Admit({{Need(2, 9)}}, running, {1, 1, 1000}, kUnlimited, false).starting.empty());
  EXPECT_TRUE(Admit({{Need(1, 9)}}, running, {1, 9, 109}, kUnlimited, false).starting.empty());
  EXPECT_FALSE(Admit({{Need(1, 9)}}, running, {1, 9, 110}, kUnlimited, false).starting.empty());
}

TEST(AdmitTest, TheFirstIsPromisedRoomWhenEnoughHaveEnded) {
  const std::vector<Claim> running = {Need(3, 50), Need(2, 20), Need(4, 30)};
  const Admission admission = Admit({{Need(7, 10)}}, running, Room(1, 1), kUnlimited, false);
  EXPECT_EQ(admission.promised, 0u);
  EXPECT_EQ(admission.bound, 30);
}

TEST(AdmitTest, WhoEndsInTimePasses) {
  const std::vector<Claim> running = {Need(6, 30)};
  const std::vector<Claim> line = {Need(8, 10), Need(4, 31), Need(4, 30), Need(1, 1)};
  const Admission admission = Admit(line, running, Room(3, 4), kUnlimited, false);
  EXPECT_EQ(admission.promised, 0u);
  EXPECT_EQ(admission.bound, 30);
  EXPECT_EQ(admission.starting, (Places{2}));
}

TEST(AdmitTest, WhoTakesOnlyWhatIsLeftOverPasses) {
  const std::vector<Claim> running = {Need(6, 30)};
  // At tick 30 there are 10 pages, of which the first takes 8.
  const std::vector<Claim> line = {Need(8, 10), Need(3, 99), Need(1, 99), Need(1, 99), Need(1, 99)};
  const Admission admission = Admit(line, running, Room(9, 4), kUnlimited, false);
  EXPECT_EQ(admission.starting, (Places{2, 3}));
}

TEST(AdmitTest, NobodyStartsWithoutASlot) {
  const std::vector<Claim> running = {Need(6, 30)};
  const std::vector<Claim> line = {Need(8, 10), Need(1, 30), Need(1, 30)};
  EXPECT_EQ(Admit(line, running, Room(0, 4), kUnlimited, false).starting, Places());
  EXPECT_EQ(Admit(line, running, Room(1, 4), kUnlimited, false).starting, (Places{1}));
}

TEST(AdmitTest, WhoStartsNowCountsForTheBound) {
  const std::vector<Claim> line = {Need(6, 20), Need(8, 10), Need(2, 20), Need(2, 21)};
  const Admission admission = Admit(line, {}, Room(4, 9), kUnlimited, false);
  EXPECT_EQ(admission.starting, (Places{0, 2}));
  EXPECT_EQ(admission.promised, 1u);
  EXPECT_EQ(admission.bound, 20);
}

TEST(AdmitTest, AClientStartsNoMoreThanItsLimit) {
  const std::vector<Claim> running = {Need(1, 9, "greedy"), Need(1, 9, "greedy")};
  const std::vector<Claim> line = {Need(1, 9, "greedy"), Need(1, 9, "greedy"),
                                   Need(1, 9, "polite")};
  const AdmissionLimits limit = OfClients({3, 100, 100000});
  EXPECT_EQ(Admit(line, running, Room(6, 50), limit, false).starting, (Places{0, 2}));
  EXPECT_EQ(Admit(line, running, Room(6, 50), OfClients({100, 3, 100000}), false).starting,
            (Places{0, 2}));
}

TEST(AdmitTest, OneRequestAClientMayAlwaysHave) {
  const std::vector<Claim> line = {Need(40, 9, "a"), Need(1, 9, "a"), Need(1, 9, "b")};
  EXPECT_EQ(Admit(line, {}, Room(6, 50), OfClients({1, 10, 100000}), false).starting,
            (Places{0, 2}));
}

TEST(AdmitTest, AClientsLaterRequestsDoNotKeepOutItsEarlierOne) {
  const std::vector<Claim> running = {Need(5, 9, "a"), Need(45, 9, "b")};
  const std::vector<Claim> line = {Need(6, 9, "a"), Need(1, 9, "a")};
  const Admission admission = Admit(line, running, Room(6, 50), OfClients({6, 10, 100000}), false);
  EXPECT_EQ(admission.starting, Places());
  EXPECT_FALSE(admission.promised) << "it waits for its client, not for room";
}

TEST(AdmitTest, APromiseIsBoundByNoLimit) {
  const std::vector<Claim> running = {Need(5, 9, "a"), Need(3, 9, "b")};
  const std::vector<Claim> line = {Need(6, 9, "a"), Need(1, 9, "b")};
  EXPECT_EQ(Admit(line, running, Room(4, 6), OfClients({6, 10, 100000}), true).starting,
            (Places{0}));
  EXPECT_EQ(Admit(line, running, Room(4, 6), OfClients({6, 10, 100000}), false).starting,
            (Places{1}));
}

TEST(AdmitTest, TheBackgroundStartsNoMoreThanItsLimit) {
  const std::vector<Claim> running = {Behind(1, 9)};
  const std::vector<Claim> line = {Need(1, 9), Behind(1, 9), Behind(1, 9), Behind(1, 9)};
  const auto starting = [&](const Footprint& limit) {
    return Admit(line, running, Room(9, 50), OfBackground(limit), false).starting;
  };
  EXPECT_EQ(starting({3, 100, 0}), (Places{0, 1, 2}));
  EXPECT_EQ(starting({100, 2, 0}), (Places{0, 1}));
  EXPECT_EQ(starting({0, 0, 0}), (Places{0}));
  EXPECT_EQ(Admit(line, {}, Room(9, 50), OfBackground({0, 0, 0}), false).starting, (Places{0, 1}))
      << "one sequence it may always have";
}

TEST(AdmitTest, WhatAClientHasInTheBackgroundDoesNotCount) {
  const std::vector<Claim> running = {Behind(1, 9), Behind(1, 9)};
  const std::vector<Claim> line = {Need(1, 9, "job"), Need(1, 9, "job"), Behind(1, 9)};
  const AdmissionLimits limits{{2, 100, 0}, {3, 100, 0}};
  EXPECT_EQ(Admit(line, running, Room(9, 50), limits, false).starting, (Places{0, 1, 2}));
}

TEST(AdmitTest, TheBackgroundIsPromisedRoomWhereNobodyElseWaits) {
  const std::vector<Claim> running = {Need(6, 30)};
  const Admission alone =
      Admit({{Need(1, 9), Behind(8, 10), Behind(1, 31)}}, running, Room(9, 4), kUnlimited, false);
  EXPECT_EQ(alone.starting, (Places{0, 2}));
  EXPECT_EQ(alone.promised, 1u);
  const AdmissionLimits limits = OfClients({1, 100, 0});  // the second waits for its client
  const std::vector<Claim> line = {Need(1, 9), Need(1, 9), Behind(8, 10), Behind(1, 99)};
  const Admission beside = Admit(line, {{Need(6, 30, "d")}}, Room(9, 4), limits, false);
  EXPECT_EQ(beside.starting, (Places{0, 3}));
  EXPECT_FALSE(beside.promised);
}

TEST(AdmitTest, TheBackgroundPassesOneThatWaitsForRoomWithoutDelayingIt) {
  const std::vector<Claim> running = {Need(6, 30)};
  // At tick 30 there are 10 pages, of which the first takes 8.
  const std::vector<Claim> line = {Need(8, 10), Behind(3, 31), Behind(1, 30), Behind(2, 99),
                                   Behind(1, 99)};
  const Admission admission = Admit(line, running, Room(9, 4), kUnlimited, false);
  EXPECT_EQ(admission.promised, 0u);
  EXPECT_EQ(admission.starting, (Places{2, 3}));
}

TEST(AdmitTest, TheBackgroundPassesNobodyWhereSeveralWaitForRoom) {
  const std::vector<Claim> running = {Need(6, 30)};
  const std::vector<Claim> line = {Need(8, 10), Need(5, 50), Behind(1, 1)};
  EXPECT_EQ(Admit(line, running, Room(9, 4), kUnlimited, false).starting, Places());
}

TEST(AdmitTest, WhatOthersWillTakeIsKeptFromTheBackground) {
  const std::vector<Claim> running = {Need(1, 9, "a"), Need(4, 30, "b")};
  const AdmissionLimits limits = OfClients({1, 100, 0});
  // The first waits for its client, and 2 of 4 pages are kept for it.
  const std::vector<Claim> line = {Need(2, 9, "a"), Behind(3, 9), Behind(2, 9), Behind(1, 9)};
  EXPECT_EQ(Admit(line, running, Room(9, 4), limits, false).starting, (Places{2}));
  const std::vector<Claim> both = {Need(8, 9, "c"), Need(1, 9, "a"), Behind(1, 99), Behind(3, 30)};
  const Admission admission = Admit(both, running, Room(9, 4), limits, false);
  EXPECT_EQ(admission.promised, 0u);
  EXPECT_EQ(admission.starting, (Places{3})) << "at tick 30 there is one page left, which a needs";
}

// ---- The line
// ------------------------------------------------------------------------------------

class AdmissionLineTest : public testing::Test {
 protected:
  using Ticket = AdmissionLine::Ticket;
  using Tickets = std::vector<Ticket>;

  Ticket Add(const std::string& client, int64_t pages = 1, int64_t ticks = 10) {
    return line_.Add(Caller(Api::kHttp, client), Need(pages, ticks).needs, ticks, now_);
  }
  Ticket AddBehind(int64_t pages = 1, int64_t ticks = 10) {
    Caller caller(Api::kHttp, "job");
    caller.background = true;
    return line_.Add(caller, Need(pages, ticks).needs, ticks, now_);
  }
  Tickets Take(const Footprint& free, const std::vector<Claim>& running = {}) {
    return line_.Take(running, free, now_);
  }

  AdmissionLine::Clock::time_point now_{};
  AdmissionLine line_{Room(8, 100), 0.5};
};

TEST_F(AdmissionLineTest, AnOnlyClientMayHaveEverything) {
  for (int i = 0; i < 8; ++i) Add("a");
  EXPECT_EQ(Take(Room(8, 100)).size(), 8u);
}

TEST_F(AdmissionLineTest, BesideOthersAClientHasItsShare) {
  for (int i = 0; i < 8; ++i) Add("a");
  const Ticket other = Add("b");
  const Tickets starting = Take(Room(8, 100));
  EXPECT_EQ(starting.size(), 5u);
  EXPECT_EQ(starting[1], other);
}

TEST_F(AdmissionLineTest, RoomIsKeptForThoseWhoCameLately) {
  Add("b");
  EXPECT_EQ(Take(Room(8, 100)).size(), 1u);
  for (int i = 0; i < 8; ++i) Add("a");
  EXPECT_EQ(Take(Room(8, 100)).size(), 4u);
  const std::vector<Claim> running(4, Need(1, 10, "a"));
  EXPECT_EQ(Take(Room(4, 96), running).size(), 0u);
  now_ += AdmissionLine::kPresence + std::chrono::seconds(1);
  EXPECT_EQ(Take(Room(4, 96), running).size(), 4u);
}

TEST_F(AdmissionLineTest, ThePromisedStaysFirst) {
  const std::vector<Claim> running = {Need(80, 50, "a")};
  const Ticket large = Add("a", 60, 1000);
  EXPECT_EQ(Take(Room(7, 20), running), Tickets());
  ASSERT_TRUE(line_.promise());
  EXPECT_EQ(line_.promise()->ticket, large);
  EXPECT_EQ(line_.promise()->bound, 50);
  const Ticket rival = Add("b", 60, 1000);  // its tag is as small
  const Ticket small = Add("b", 20, 50);
  EXPECT_EQ(Take(Room(7, 20), running), Tickets());  // b's share is 50 pages
  line_.Remove(rival);
  EXPECT_EQ(Take(Room(7, 20), running), Tickets{small});
  EXPECT_EQ(line_.promise()->ticket, large);
  EXPECT_EQ(Take(Room(8, 100)), Tickets{large});
  EXPECT_FALSE(line_.promise());
}

TEST_F(AdmissionLineTest, APromiseEndsWithItsRequest) {
  const std::vector<Claim> running = {Need(80, 50, "a")};
  const Ticket large = Add("a", 60);
  Take(Room(7, 20), running);
  line_.Remove(large);
  EXPECT_FALSE(line_.promise());
  line_.Remove(large);
  EXPECT_EQ(line_.size(), 0u);
}

TEST_F(AdmissionLineTest, TheBackgroundIsBehindAllOthers) {
  Tickets behind;
  for (int i = 0; i < 3; ++i) behind.push_back(AddBehind());
  const Tickets others = {Add("a"), Add("a")};
  EXPECT_EQ(line_.size(), 5u);
  EXPECT_EQ(line_.background(), 3u);
  EXPECT_EQ(Take(Room(3, 30)), (Tickets{others[0], others[1], behind[0]}));
}

TEST_F(AdmissionLineTest, TheBackgroundHoldsHalfAtMost) {
  for (int i = 0; i < 8; ++i) AddBehind();
  EXPECT_EQ(Take(Room(8, 100)).size(), 4u);
  EXPECT_EQ(Take(Room(4, 96), std::vector<Claim>(4, Behind(1, 10))).size(), 0u);
  const Ticket other = Add("a");
  EXPECT_EQ(Take(Room(4, 96), std::vector<Claim>(4, Behind(1, 10))), Tickets{other});
}

TEST_F(AdmissionLineTest, TheBackgroundIsNobodysCompany) {
  AddBehind();
  Take(Room(8, 100));
  AddBehind();
  for (int i = 0; i < 8; ++i) Add("a");
  EXPECT_EQ(Take(Room(8, 100)).size(), 8u) << "an only client may hold everything";
}

TEST_F(AdmissionLineTest, APromiseToTheBackgroundIsDroppedWhenSomebodyComes) {
  const std::vector<Claim> running = {Need(80, 50, "a")};
  const Ticket behind = AddBehind(40, 100);
  EXPECT_EQ(Take(Room(7, 20), running), Tickets());
  ASSERT_TRUE(line_.promise());
  EXPECT_EQ(line_.promise()->ticket, behind);
  AddBehind(40, 100);
  EXPECT_EQ(line_.promise()->ticket, behind) << "another in the background changes nothing";
  const Ticket other = Add("b", 30, 1000);
  EXPECT_FALSE(line_.promise());
  EXPECT_EQ(Take(Room(7, 20), running), Tickets());
  EXPECT_EQ(line_.promise()->ticket, other);
  EXPECT_EQ(Take(Room(7, 20), {{Need(80, 50, "a")}}), Tickets());
  EXPECT_EQ(Take(Room(8, 40), {{Need(60, 50, "a")}}), Tickets{other});
  EXPECT_EQ(line_.promise()->ticket, behind) << "again, as nobody else waits";
}

// Small requests of ever new clients do not keep out a large one.
TEST_F(AdmissionLineTest, NewcomersStarveNobody) {
  struct Run {
    Ticket ticket;
    Claim claim;
    int64_t end;
  };
  std::vector<Run> runs;
  std::vector<std::string> names(200000);
  const Ticket first = Add("victim", 100, 50);
  const Ticket second = Add("victim", 100, 50);
  Footprint free = Room(8, 100);
  std::vector<std::pair<Ticket, Claim>> here = {{first, Need(100, 50, "victim")},
                                                {second, Need(100, 50, "victim")}};
  bool done = false;
  int64_t tick = 0;
  for (size_t next = 0; !done; ++tick) {
    now_ += std::chrono::milliseconds(1);
    while (line_.size() < 32) {
      names[next] = "client " + std::to_string(next);
      here.emplace_back(Add(names[next], 1, 10), Need(1, 10, names[next]));
      ++next;
    }
    std::erase_if(runs, [&](const Run& run) {
      if (run.end > tick) return false;
      free = {free.slots + 1, free.pages + run.claim.needs.pages,
              free.bytes + run.claim.needs.bytes};
      return true;
    });
    std::vector<Claim> running;
    for (const Run& run : runs) {
      running.push_back({run.claim.needs, run.end - tick, run.claim.client});
    }
    for (const Ticket ticket : Take(free, running)) {
      const auto found = std::find_if(here.begin(), here.end(),
                                      [&](const auto& entry) { return entry.first == ticket; });
      free = Free(free, found->second.needs);
      runs.push_back({ticket, found->second, tick + found->second.ticks});
      here.erase(found);
      done = done || ticket == second;
    }
    // Costs are 50 and 1.25 and 32 wait: at most 32 * 50 / 1.25 newcomers, and the 32, go ahead.
    ASSERT_LT(tick, 3 * 50 * (32 * 50 * 4 / 5 + 32 + 1));
  }
}

}  // namespace
}  // namespace hippodrome::admission_test
