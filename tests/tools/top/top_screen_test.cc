#include "tools/top/top_screen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace hippodrome::top_screen_test {
namespace {

int Columns(const std::string& line) {
  return static_cast<int>(
      std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

TopFrame Frame(int models = 1) {
  TopFrame frame{.address = "127.0.0.1:8080", .clock = "12:01:03", .known = true};
  TopFigures& f = frame.figures;
  f.version = "1.2.3";
  f.new_tokens = 1234;
  f.prompt_tokens = 56.7;
  f.requests = 8;
  f.queued = 3;
  f.running = 32;
  f.http_connections = 12;
  f.first_token = {.p50 = 0.0123, .p99 = 0.25};
  f.between_tokens = {.p50 = 0.000812};
  f.failures = {{"overloaded", 2.5}};
  for (int i = 0; i < models; ++i) {
    f.models.push_back({.name = "model-" + std::to_string(i),
                        .new_tokens = 99.5,
                        .slots = 5,
                        .all_slots = 64,
                        .bytes = 1 << 20,
                        .all_bytes = 1 << 30});
  }
  frame.new_tokens = {0, 50, 100};
  return frame;
}

std::string Joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

TEST(TopScreenTest, ShowsEverythingIn80By24) {
  EXPECT_EQ(Joined(Render(Frame(), {})),
            "hippodrome 1.2.3  127.0.0.1:8080  12:01:03\n"
            "\n"
            "new tokens             1.23k /s ▁▅█\n"
            "prompt tokens           56.7 /s \n"
            "requests                   8 /s \n"
            "\n"
            "latency                  p50       p99\n"
            "first token          12.3 ms    250 ms\n"
            "between tokens        812 us         -\n"
            "request                    -         -\n"
            "\n"
            "queue 3  running 32  connections http 12 grpc -\n"
            "failures/s  overloaded 2.50  \n"
            "\n"
            "model               tokens  prompt  queue   run   slots     state        of\n"
            "model-0               99.5       -      -     -    5/64  1.00 MiB  1.00 GiB\n"
            "\n\n\n\n\n\n\n"
            "q quit  p pause  r rates or totals\n");
}

TEST(TopScreenTest, FitsAnyScreen) {
  TopFrame frame = Frame(9);
  frame.problem = "cannot connect to 127.0.0.1:8080: Connection refused; trying again";
  frame.paused = frame.totals = true;
  for (int columns : {0, 1, 5, 20, 40, 79, 80, 132, 300}) {
    for (int rows = 0; rows < 40; ++rows) {
      for (const bool keys : {false, true}) {
        const auto lines = Render(frame, {.columns = columns, .rows = rows, .keys = keys});
        EXPECT_LE(lines.size(), rows);
        for (const std::string& line : lines) EXPECT_LE(Columns(line), columns) << line;
      }
    }
  }
}

TEST(TopScreenTest, SaysWhichModelsDoNotFit) {
  const std::string text = Joined(Render(Frame(12), {}));
  EXPECT_NE(text.find("model-6"), std::string::npos) << text;
  EXPECT_EQ(text.find("model-7"), std::string::npos);
  EXPECT_NE(text.find("5 more models\nq quit"), std::string::npos) << text;
  EXPECT_NE(Joined(Render(Frame(12), {.rows = 60})).find("model-11"), std::string::npos);
}

TEST(TopScreenTest, WideScreensHaveLatenciesOfModels) {
  EXPECT_NE(Joined(Render(Frame(), {.columns = 140})).find("itl p50"), std::string::npos);
}

TEST(TopScreenTest, ColorsOnlyWhereTheyAreWanted) {
  EXPECT_EQ(Joined(Render(Frame(), {})).find('\x1b'), std::string::npos);
  const std::string colored = Joined(Render(Frame(), {.color = true}));
  EXPECT_NE(colored.find("\x1b[31m2.50"), std::string::npos);
  // Without its colours it is the same text.
  std::string plain;
  for (size_t i = 0; i < colored.size(); ++i) {
    if (colored[i] == '\x1b') {
      i = colored.find('m', i);
    } else {
      plain += colored[i];
    }
  }
  EXPECT_EQ(plain, Joined(Render(Frame(), {})));
}

TEST(TopScreenTest, ServersCannotSendEscapeSequences) {
  TopFrame frame = Frame();
  frame.figures.version = "\x1b[2J";
  frame.figures.models[0].name =
      "a\nb\x9b"
      "c\xc3\xa9";
  frame.figures.failures = {{"x\x1b]0;y\x07", 1}};
  frame.problem = "/metrics answers 500: \x1b[31m";
  const std::string text = Joined(Render(frame, {}));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\x9b'), std::string::npos);
  EXPECT_NE(text.find("a?b?c??"), std::string::npos) << text;
}

TEST(TopScreenTest, SaysWhatIsWrongBesideTheLastFigures) {
  TopFrame frame = Frame();
  frame.problem = "gone; trying again";
  const std::string text = Joined(Render(frame, {}));
  EXPECT_NE(text.find("\ngone; trying again\n"), std::string::npos);
  EXPECT_NE(text.find("model-0"), std::string::npos);
  frame.known = false;
  EXPECT_EQ(Joined(Render(frame, {})).find("queue"), std::string::npos);
}

TEST(TopScreenTest, TotalsAndPausesAreTold) {
  TopFrame frame = Frame();
  frame.totals = frame.paused = true;
  const std::string text = Joined(Render(frame, {}));
  EXPECT_NE(text.find("totals  paused"), std::string::npos);
  EXPECT_EQ(text.find("/s"), std::string::npos);
}

TEST(SparklineTest, IsBesideTheLargest) {
  const History history = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(Sparkline(history, 80, true), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(Sparkline(history, 80, false), ".:-=+*#@");
  EXPECT_EQ(Sparkline(history, 3, false), "*#@");
  EXPECT_EQ(Sparkline({1, std::nullopt, 0}, 80, false), "@ .");
  EXPECT_EQ(Sparkline({0, 0}, 80, false), "..");
  EXPECT_EQ(Sparkline({}, 80, true), "");
  EXPECT_EQ(Sparkline(history, 0, true), "");
}

TEST(ShortNumberTest, KeepsThreeDigits) {
  EXPECT_EQ(ShortNumber(std::nullopt), "-");
  EXPECT_EQ(ShortNumber(0), "0");
  EXPECT_EQ(ShortNumber(7), "7");
  EXPECT_EQ(ShortNumber(2.5), "2.50");
  EXPECT_EQ(ShortNumber(56.78), "56.8");
  EXPECT_EQ(ShortNumber(999), "999");
  EXPECT_EQ(ShortNumber(1234), "1.23k");
  EXPECT_EQ(ShortNumber(123456), "123k");
  EXPECT_EQ(ShortNumber(12345678), "12.3M");
  EXPECT_EQ(ShortDuration(0.0000005), "0 us");
  EXPECT_EQ(ShortDuration(0.0456), "45.6 ms");
  EXPECT_EQ(ShortDuration(2), "2.00 s");
  EXPECT_EQ(ShortDuration(300), "300 s");
  EXPECT_EQ(ShortBytes(512), "512 B");
  EXPECT_EQ(ShortBytes(1536), "1.50 KiB");
}

}  // namespace
}  // namespace hippodrome::top_screen_test
