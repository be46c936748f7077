#include "tools/bench/bench_report.h"

#include <cstdio>

#include <nlohmann/json.hpp>

#include "tools/command_line/text_file.h"

namespace hippodrome {
namespace {

nlohmann::json ToJson(const Ceilings& c) {
  return {{"threads", c.threads},
          {"read_bytes_per_s", c.read_bytes},
          {"f32_flops", c.f32_flops},
          {"bf16_flops", c.bf16_flops}};
}

nlohmann::json ToJson(const BenchResult& r) {
  return {{"name", r.name},   {"length", r.length}, {"batch", r.batch}, {"weights", r.weights},
          {"value", r.value}, {"unit", r.unit},     {"limit", r.limit}, {"fraction", r.fraction}};
}

void Print(const Ceilings& c) {
  if (c.threads == 0) {
    std::printf("ceilings: copy %.0f GB/s, f32 %.1f TFLOP/s, bf16 %.0f TFLOP/s\n",
                c.read_bytes / 1e9, c.f32_flops / 1e12, c.bf16_flops / 1e12);
    return;
  }
  std::printf("ceilings, %d thread(s): read %.1f GB/s, f32 %.0f GFLOP/s, bf16 %.0f GFLOP/s\n",
              c.threads, c.read_bytes / 1e9, c.f32_flops / 1e9, c.bf16_flops / 1e9);
}

void Print(const BenchResult& r) {
  std::printf("%-24s length %6lld batch %3lld %-5s %12.2f %-9s", r.name.c_str(),
              static_cast<long long>(r.length), static_cast<long long>(r.batch), r.weights.c_str(),
              r.value, r.unit.c_str());
  if (r.limit > 0) std::printf(" limit %10.2f  %5.1f %%", r.limit, 100 * r.fraction);
  std::printf("\n");
}

void Print(const std::string& figure, const Shares& shares) {
  std::printf("%s, share of time:", figure.c_str());
  for (const auto& [operation, share] : shares) {
    if (share >= 0.005) std::printf("  %s %.1f %%", operation.c_str(), 100 * share);
  }
  std::printf("\n");
}

}  // namespace

absl::Status Report(const CommandLine& line, const std::string& machine, const Figures& figures) {
  std::printf("%s\n", machine.c_str());
  Print(figures.ceilings);
  for (const BenchResult& result : figures.results) Print(result);
  for (const auto& [figure, shares] : figures.shares) Print(figure, shares);
  if (!line.Has("json")) return absl::OkStatus();
  nlohmann::json rows = nlohmann::json::array();
  for (const BenchResult& result : figures.results) rows.push_back(ToJson(result));
  const nlohmann::json json = {{"machine", machine},
                               {"command", "hippodrome " + line.text()},
                               {"ceilings", ToJson(figures.ceilings)},
                               {"results", rows}};
  return WriteTextFile(line.Text("json", ""), json.dump(2) + "\n");
}

}  // namespace hippodrome
