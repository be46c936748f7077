#include "tools/bench/bench_compare.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <optional>
#include <utility>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

constexpr int kWidth = 17;  // of a column

struct WeightsModel {
  DType weights = DType::kF32;
  std::unique_ptr<TimedModel> model;
};

std::string Megabytes(int64_t bytes) { return std::to_string(bytes / 1000000) + " MB"; }

// A system that promises more memory than it has ends the program when it is used, so ask before.
absl::Status CheckMemory(const Machine& machine, DType weights, int64_t needed) {
  const int64_t free = machine.free_memory();
  if (free >= needed) return absl::OkStatus();
  return ResourceExhausted("not all models fit into memory: that with " +
                           std::string(WeightsName(weights)) + " weights needs " +
                           Megabytes(needed) + ", " + Megabytes(free) +
                           " are free; expected fewer types or smaller batches");
}

absl::StatusOr<std::vector<WeightsModel>> MakeModels(Machine& machine,
                                                     const CompareBenchmark& benchmark) {
  const bool all = benchmark.weights.empty();
  const std::vector<DType> types =
      all ? std::vector<DType>(std::begin(kWeightTypes), std::end(kWeightTypes))
          : benchmark.weights;
  std::vector<WeightsModel> models;
  int64_t states = 0;  // and all else that does not depend on the type
  for (const DType weights : types) {
    const int64_t bytes = benchmark.weight_bytes(weights);
    HIPPODROME_RETURN_IF_ERROR(CheckMemory(machine, weights, bytes + states));
    const int64_t before = machine.free_memory();
    auto model = benchmark.make(*machine.backend, weights);
    if (all && model.status().code() == absl::StatusCode::kUnimplemented) continue;
    HIPPODROME_RETURN_IF_ERROR(model.status());
    states = std::max(states, before - machine.free_memory() - bytes);
    models.push_back({weights, *std::move(model)});
  }
  return models;
}

// How many times as fast as `bf16`.
double SpeedRatio(const TimedWork& work, const TimedWork& bf16) {
  std::vector<double> ratios;
  for (size_t round = 0; round < work.seconds.size(); ++round) {
    ratios.push_back(bf16.seconds[round] / work.seconds[round]);
  }
  return Median(std::move(ratios));
}

std::vector<BenchResult> ComparedResults(const std::vector<WeightsModel>& models,
                                         const Ceilings& ceilings) {
  const auto bf16 = std::ranges::find(models, DType::kBF16, &WeightsModel::weights);
  std::vector<BenchResult> results;
  for (const WeightsModel& one : models) {
    const std::vector<TimedWork>& works = one.model->works();
    for (size_t i = 0; i < works.size(); ++i) {
      results.push_back(MedianRate(works[i], ceilings));
      if (bf16 == models.end()) continue;
      results.back().to_bf16 = SpeedRatio(works[i], bf16->model->works()[i]);
    }
  }
  return results;
}

// What a section of the table says of a result, if anything.
using Cell = std::optional<std::string> (*)(const BenchResult&);

template <typename... Values>
std::string Formatted(const char* format, Values... values) {
  char text[128];
  std::snprintf(text, sizeof(text), format, values...);
  return text;
}

constexpr std::pair<const char*, Cell> kSections[] = {
    {"tokens/s, median",
     [](const BenchResult& r) { return std::optional(Formatted("%.1f", r.value)); }},
    {"tokens/s, slowest..fastest round",
     [](const BenchResult& r) -> std::optional<std::string> {
       if (!r.spread) return std::nullopt;
       return Formatted("%.1f..%.1f", r.spread->least, r.spread->most);
     }},
    {"of the limit",
     [](const BenchResult& r) { return std::optional(Formatted("%.1f %%", 100 * r.fraction)); }},
    {"times bf16",
     [](const BenchResult& r) -> std::optional<std::string> {
       if (!r.to_bf16) return std::nullopt;
       return Formatted("%.2f", *r.to_bf16);
     }},
    {"MB/token",
     [](const BenchResult& r) {
       return std::optional(Formatted("%.3f", r.bytes_per_token / 1e6));
     }},
};

std::string Column(const std::string& text) { return Formatted(" %*s", kWidth - 1, text.c_str()); }

std::string RowLabel(const std::string& text) { return Formatted("%-8s", text.c_str()); }

// Titles of the columns: those of the works of the first type.
std::string Header(const std::vector<BenchResult>& results) {
  std::string line = RowLabel("");
  for (const BenchResult& r : results) {
    if (r.weights != results.front().weights) break;
    line += Column(r.name + " " + std::to_string(r.batch) + "x" + std::to_string(r.length));
  }
  return line + "\n";
}

std::string Rows(const std::vector<BenchResult>& results, Cell cell) {
  std::string rows, weights;
  for (const BenchResult& r : results) {
    const std::optional<std::string> text = cell(r);
    if (!text) continue;
    if (r.weights != weights) rows += (rows.empty() ? "" : "\n") + RowLabel("  " + r.weights);
    weights = r.weights;
    rows += Column(*text);
  }
  return rows;
}

}  // namespace

absl::StatusOr<BenchReport> BenchCompare(Machine& machine, const CompareBenchmark& benchmark) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<WeightsModel> models,
                              MakeModels(machine, benchmark));
  std::vector<TimedModel*> turns;
  for (const WeightsModel& one : models) turns.push_back(one.model.get());
  BenchReport report;
  HIPPODROME_ASSIGN_OR_RETURN(report.ceilings, RunTurns(machine, turns, benchmark.repeats));
  report.results = ComparedResults(models, report.ceilings);
  return report;
}

std::string CompareTable(const std::vector<BenchResult>& results) {
  std::string table = Header(results);
  for (const auto& [title, cell] : kSections) {
    const std::string rows = Rows(results, cell);
    if (!rows.empty()) table += std::string(title) + "\n" + rows + "\n";
  }
  return table;
}

}  // namespace hippodrome
