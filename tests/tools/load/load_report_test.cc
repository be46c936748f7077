#include "tools/load/load_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace hippodrome::load_report_test {
namespace {

const Percentiles kSome{100, 1, 2, 3, 4, 5};

LoadPoint Point(double rate, bool tokens = true) {
  LoadPoint point{.plan = {.rate = rate, .concurrency = 8, .duration = std::chrono::seconds(10)}};
  LoadFigures& f = point.figures;
  f.requests = 100;
  f.answered = 97;
  f.refused = 2;
  f.failed = 1;
  f.codes = {{"200", 97}, {"429", 2}, {"500", 1}};
  f.failure = "no <luck>";
  f.end_to_end = f.lag = kSome;
  if (tokens) f.first_token = f.between_tokens = f.per_token = kSome;
  f.seconds = 10;
  f.offered = rate;
  f.requests_per_second = 9.7;
  f.goodput = 9.6;
  f.good = 96;
  f.good_share = 0.96;
  return point;
}

double ValueOf(const std::vector<LoadFigure>& figures, const std::string& name) {
  for (const LoadFigure& figure : figures) {
    if (figure.name == name) return figure.value;
  }
  ADD_FAILURE() << "no " << name;
  return 0;
}

TEST(LoadReportTest, EveryFigureHasAName) {
  const auto figures = FiguresByName(Point(10), 32);
  std::set<std::string> names;
  for (const LoadFigure& figure : figures) EXPECT_TRUE(names.insert(figure.name).second);
  EXPECT_EQ(names.size(), 4 + 5 * 5);
  EXPECT_EQ(ValueOf(figures, "time_to_first_token_p50"), 1);
  EXPECT_EQ(ValueOf(figures, "inter_token_latency_p90"), 2);
  EXPECT_EQ(ValueOf(figures, "time_per_output_token_p95"), 3);
  EXPECT_EQ(ValueOf(figures, "end_to_end_p99"), 4);
  EXPECT_EQ(ValueOf(figures, "client_lag_max"), 5);
  EXPECT_EQ(ValueOf(figures, "goodput"), 9.6);
}

TEST(LoadReportTest, WhatIsOfferedLimitsWhatCanBeReached) {
  for (const LoadFigure& figure : FiguresByName(Point(10), 32)) {
    if (figure.name == "requests_per_second" || figure.name == "goodput") {
      EXPECT_EQ(figure.limit, 10);
    } else if (figure.name == "output_tokens_per_second") {
      EXPECT_EQ(figure.limit, 320);
    } else {
      EXPECT_EQ(figure.limit, 0) << figure.name;
    }
  }
  for (const LoadFigure& figure : FiguresByName(Point(0), 32)) EXPECT_EQ(figure.limit, 0);
}

TEST(LoadReportTest, LeavesOutWhatNeverWas) {
  EXPECT_EQ(FiguresByName(Point(10, false), 0).size(), 4 + 2 * 5);
  EXPECT_EQ(PointTable(Point(10, false), {}).find("first token"), std::string::npos);
}

TEST(LoadReportTest, TheTableTellsHowRequestsEnded) {
  const std::string table = PointTable(Point(10), {.first_token = 50});
  EXPECT_NE(table.find("97 answered, 2 refused, 1 failed, 0 not sent"), std::string::npos) << table;
  EXPECT_NE(table.find("2 x 429"), std::string::npos);
  EXPECT_NE(table.find("no <luck>"), std::string::npos);
  EXPECT_NE(table.find("within the limits: 96, 96.0 %"), std::string::npos);
  EXPECT_EQ(table.find("Warning"), std::string::npos);
  LoadPoint late = Point(10);
  late.figures.lag.p99 = 20;
  EXPECT_NE(PointTable(late, {}).find("Warning: the client sent late"), std::string::npos);
  EXPECT_EQ(PointTable(late, {}).find("within the limits"), std::string::npos);
}

TEST(LoadReportTest, Counts) {
  const nlohmann::json open = PointCounts(Point(10));
  EXPECT_EQ(open["rate"], 10);
  EXPECT_FALSE(open.contains("concurrency"));
  EXPECT_EQ(open["codes"]["429"], 2);
  EXPECT_EQ(PointCounts(Point(0))["concurrency"], 8);
}

TEST(LoadReportTest, DrawsWhatWasAskedFor) {
  const auto open = DrawSweep({Point(1), Point(2)}, {.first_token = 50}, "a <b> & c");
  for (const char* text : {"a &lt;b&gt; &amp; c", "time to first token, ms", "offered requests/s",
                           "within the limits", "median", "99th percentile", "limit"}) {
    EXPECT_NE(open.svg.find(text), std::string::npos) << text;
  }
  const auto closed = DrawSweep({Point(0)}, {}, "t");
  EXPECT_NE(closed.svg.find("clients at once"), std::string::npos);
  EXPECT_NE(closed.svg.find("new tokens/s"), std::string::npos);
  EXPECT_EQ(closed.svg.find("within the limits"), std::string::npos);
  EXPECT_NE(DrawSweep({Point(0, false)}, {}, "t").svg.find("time to answer, ms"),
            std::string::npos);
}

}  // namespace
}  // namespace hippodrome::load_report_test
