#include "tools/bench/bench_report.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tools/command_line/text_file.h"

namespace hippodrome {
namespace {

nlohmann::json ToJson(const Ceilings& c) {
  return {{"threads", c.threads},
          {"read_bytes_per_s", c.read_bytes},
          {"f32_flops", c.f32_flops},
          {"bf16_flops", c.bf16_flops},
          {"int8_flops", c.int8_flops}};
}

nlohmann::json ToJson(const BenchResult& r) {
  nlohmann::json json = {{"name", r.name},       {"length", r.length},    {"batch", r.batch},
                         {"weights", r.weights}, {"value", r.value},      {"unit", r.unit},
                         {"limit", r.limit},     {"fraction", r.fraction}};
  if (r.rate > 0) json["rate"] = r.rate;
  if (r.bytes_per_token > 0) json["bytes_per_token"] = r.bytes_per_token;
  if (r.spread) {
    json["least"] = r.spread->least;
    json["mean"] = r.spread->mean;
    json["most"] = r.spread->most;
  }
  if (r.to_bf16) json["to_bf16"] = *r.to_bf16;
  if (!r.bound_by.empty()) json["bound_by"] = r.bound_by;
  return json;
}

void Print(const Ceilings& c) {
  if (c.threads == 0) {
    std::printf("ceilings: copy %.0f GB/s, f32 %.1f TFLOP/s, bf16 %.0f TFLOP/s\n",
                c.read_bytes / 1e9, c.f32_flops / 1e12, c.bf16_flops / 1e12);
    return;
  }
  std::printf(
      "ceilings, %d thread(s): read %.1f GB/s, f32 %.0f GFLOP/s, bf16 %.0f GFLOP/s, int8 %.0f "
      "GOP/s\n",
      c.threads, c.read_bytes / 1e9, c.f32_flops / 1e9, c.bf16_flops / 1e9, c.int8_flops / 1e9);
}

void Print(const BenchResult& r) {
  std::printf("%-24s length %6lld batch %3lld %-5s %12.2f %-9s", r.name.c_str(),
              static_cast<long long>(r.length), static_cast<long long>(r.batch), r.weights.c_str(),
              r.value, r.unit.c_str());
  if (r.limit > 0) std::printf(" limit %10.2f  %5.1f %%", r.limit, 100 * r.fraction);
  if (r.spread) std::printf("  mean %10.2f", r.spread->mean);
  if (r.bytes_per_token > 0) std::printf("  %9.3f MB/token", r.bytes_per_token / 1e6);
  if (!r.bound_by.empty()) std::printf("  predicted, by %s", r.bound_by.c_str());
  std::printf("\n");
}

void Print(const std::string& work, const Shares& shares) {
  std::printf("%s, share of time:", work.c_str());
  for (const auto& [operation, share] : shares) {
    if (share >= 0.005) std::printf("  %s %.1f %%", operation.c_str(), 100 * share);
  }
  std::printf("\n");
}

std::optional<Spread> SpreadOf(const TimedWork& work) {
  if (work.seconds.size() < 2) return std::nullopt;
  const auto [fastest, slowest] = std::ranges::minmax(work.seconds);
  const double all = std::accumulate(work.seconds.begin(), work.seconds.end(), 0.0);
  const auto rounds = static_cast<double>(work.seconds.size());
  return Spread{.least = work.tokens / slowest,
                .mean = rounds * work.tokens / all,
                .most = work.tokens / fastest};
}

// Where a round takes `seconds`.
BenchResult RateOfRound(const TimedWork& work, double seconds, const Ceilings& ceilings) {
  const double least = LeastSeconds(work.cost, work.weights, ceilings);
  return {.name = work.name,
          .length = work.length,
          .batch = work.batch,
          .weights = WeightsName(work.weights),
          .value = work.tokens / seconds,
          .unit = "tokens/s",
          .limit = work.tokens / least,
          .fraction = least / seconds,
          .bytes_per_token = work.cost.bytes / work.tokens,
          .spread = SpreadOf(work)};
}

}  // namespace

BenchResult BestRate(const TimedWork& work, const Ceilings& ceilings) {
  return RateOfRound(work, std::ranges::min(work.seconds), ceilings);
}

BenchResult MedianRate(const TimedWork& work, const Ceilings& ceilings) {
  return RateOfRound(work, Median(work.seconds), ceilings);
}

Shares SharesOf(const TimingBackend& timing, double seconds) {
  Shares shares = timing.seconds();
  double rest = seconds;
  for (auto& [operation, share] : shares) {
    rest -= share;
    share /= seconds;
  }
  shares["other"] = std::max(0.0, rest / seconds);
  return shares;
}

BoundShares::BoundShares(const Machine& machine) : machine_(machine), before_(Seconds()) {}

Shares BoundShares::Seconds() const {
  return machine_.seconds_by_bound ? machine_.seconds_by_bound() : Shares();
}

Shares BoundShares::Get() const {
  Shares shares = Seconds();
  for (auto& [bound, seconds] : shares) {
    const auto before = before_.find(bound);
    if (before != before_.end()) seconds -= before->second;
  }
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0,
                                     [](double sum, const auto& s) { return sum + s.second; });
  for (auto& [bound, seconds] : shares) seconds /= all;
  return shares;
}

std::string BoundShares::Largest() const {
  Shares shares = Get();
  shares.erase("launches");
  if (shares.empty()) return "";
  return std::ranges::max_element(shares, {}, &Shares::value_type::second)->first;
}

absl::Status WriteReport(const CommandLine& line, const std::string& machine,
                         const BenchReport& report, const std::string& table) {
  std::printf("%s\n", machine.c_str());
  Print(report.ceilings);
  if (table.empty()) {
    for (const BenchResult& result : report.results) Print(result);
  } else {
    std::fputs(table.c_str(), stdout);
  }
  for (const auto& [work, shares] : report.shares) Print(work, shares);
  if (!line.Has("json")) return absl::OkStatus();
  return WriteTextFile(line.Text("json"), ReportText(ReportJson(line, machine, report)));
}

nlohmann::json ReportJson(const CommandLine& line, const std::string& machine,
                          const BenchReport& report) {
  nlohmann::json rows = nlohmann::json::array();
  for (const BenchResult& result : report.results) rows.push_back(ToJson(result));
  return {{"machine", machine},
          {"command", "hippodrome " + line.text()},
          {"ceilings", ToJson(report.ceilings)},
          {"results", rows}};
}

std::string ReportText(const nlohmann::json& report) {
  std::string text = "{\n";
  for (const auto& [name, value] : report.items()) {
    if (text.size() > 2) text += ",\n";
    text += " \"" + name + "\": ";
    if (!value.is_array()) {
      text += value.dump();
      continue;
    }
    text += "[\n";
    for (size_t i = 0; i < value.size(); ++i) {
      text += "  " + value[i].dump() + (i + 1 < value.size() ? ",\n" : "\n");
    }
    text += " ]";
  }
  return text + "\n}\n";
}

}  // namespace hippodrome
