#include "tools/client/event_stream.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hippodrome::event_stream_test {
namespace {

constexpr char kStream[] =
    "data: one\r\n\r\n: waiting\n\nevent: x\ndata:two\n\ndata: \n\ndata: [DONE]\n\n";
const std::vector<std::string> kEvents = {"one", "two", "", "[DONE]"};

TEST(EventStreamTest, PiecesMayEndAnywhere) {
  const std::string stream = kStream;
  for (size_t size = 1; size <= stream.size(); ++size) {
    std::vector<std::string> events;
    EventStream reader([&](std::string_view data) { events.emplace_back(data); });
    for (size_t at = 0; at < stream.size(); at += size) {
      EXPECT_TRUE(reader.Add(stream.substr(at, size)));
    }
    EXPECT_EQ(events, kEvents) << "pieces of " << size;
  }
}

TEST(EventStreamTest, IncompleteLinesAreNoEvents) {
  int events = 0;
  EventStream reader([&](std::string_view) { ++events; });
  EXPECT_TRUE(reader.Add("data: one"));
  EXPECT_EQ(events, 0);
}

TEST(EventStreamTest, RefusesLinesWithoutEnd) {
  EventStream reader([](std::string_view) {});
  EXPECT_TRUE(reader.Add(std::string(EventStream::kMostLine, 'x')));
  EXPECT_FALSE(reader.Add("x"));
}

}  // namespace
}  // namespace hippodrome::event_stream_test
