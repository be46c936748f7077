// Counts what the kernels ask of a device while small models are served and trained under the
// emulator.
//
//   kernel_counts [OPERATION...]  prints it, and where these operations could do with less
//   kernel_counts --check FILE    ends with 1 where a count is more than 2 % above that of FILE
//   kernel_counts --write FILE    writes the counts there
//   kernel_counts --units         prints what each kernel asks for a unit of its work; ends with 1
//                                 where kernel_units.h has another number, or ModelledBackend
//                                 launches other blocks than CudaBackend
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_backend.h"
#include "tests/cuda_on_cpu/counters.h"
#include "tests/kernels/cuda/counted_shapes.h"
#include "tools/device_model/kernel_units.h"
#include "tools/device_model/modelled_backend.h"

namespace hippodrome {
namespace {

using cuda_on_cpu::Access;
using cuda_on_cpu::KernelCounts;
using cuda_on_cpu::MemoryCounts;

double Ratio(int64_t a, int64_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

// Of whatever type: those of bytes are twice as deep and take as long.
int64_t Products(const KernelCounts& c) { return c.mma_bf16 + c.mma_f16 + c.mma_s8; }

// What a change may not raise.
using Budget = std::map<std::string, int64_t>;
Budget BudgetOf(const KernelCounts& c) {
  return {{"launches", c.launches},
          {"read sectors", c.Of(Access::kGlobalRead).units},
          {"written sectors", c.Of(Access::kGlobalWrite).units},
          {"L2 sectors", c.l2_sectors},
          {"DRAM bytes", c.dram_read + c.dram_written},
          {"shared wavefronts", c.Of(Access::kSharedRead).units + c.Of(Access::kSharedWrite).units},
          {"mma", Products(c)},
          {"shuffles and votes", c.shuffles + c.votes},
          {"barriers", c.barriers},
          {"atomics", c.atomics}};
}

// Shape -> operation -> counter.
using Budgets = std::map<std::string, std::map<std::string, Budget>>;
Budgets CountAll() {
  Budgets budgets;
  for (const CountedShape& shape : CountedShapes()) {
    shape.run();
    for (const auto& [operation, counts] : cuda_on_cpu::Counts()) {
      budgets[shape.name][operation] = BudgetOf(counts);
    }
  }
  return budgets;
}

// Whether a count is above its budget; says so.
bool IsAbove(const std::string& place, const std::string& counter, int64_t count, int64_t budget) {
  constexpr double kAllowed = 1.02;
  if (static_cast<double>(count) <= kAllowed * static_cast<double>(budget)) return false;
  std::printf("%s: %s: %lld, at most %lld\n", place.c_str(), counter.c_str(),
              static_cast<long long>(count), static_cast<long long>(budget));
  return true;
}

int Check(const char* path) {
  std::ifstream file(path);
  const auto budgets = nlohmann::json::parse(file).get<Budgets>();
  bool above = false;
  for (const auto& [shape, operations] : CountAll()) {
    for (const auto& [operation, counts] : operations) {
      const std::string place = shape + ": " + operation;
      const auto of_shape = budgets.find(shape);
      if (of_shape == budgets.end() || !of_shape->second.contains(operation)) {
        std::printf("%s: has no budget in %s\n", place.c_str(), path);
        above = true;
        continue;
      }
      const Budget& budget = of_shape->second.at(operation);
      for (const auto& [counter, count] : counts) {
        above |= IsAbove(place, counter, count, budget.at(counter));
      }
    }
  }
  if (above) std::printf("where that is meant: kernel_counts --write %s\n", path);
  return above ? 1 : 0;
}

int Write(const char* path) {
  std::ofstream(path) << nlohmann::json(CountAll()).dump(1) << "\n";
  return 0;
}

// Whether the table has `count`; says so if not.
bool IsNear(const UnitShape& shape, const char* counter, double table, double count) {
  constexpr double kAllowed = 0.02;
  if (std::abs(table - count) <= kAllowed * count) return true;
  std::printf("%s: %s: the table has %g\n", shape.kernel, counter, table);
  return false;
}

// Whether both launch as many blocks, where the one that is modelled has a kernel.
bool SameGrids(const std::map<std::string, KernelCounts>& counted,
               const ModelledBackend& modelled) {
  std::map<std::string, ModelledLaunches> launched;
  for (const auto& [kernel, launches] : modelled.launches()) {
    // "sample greedy" is launched as "sample".
    ModelledLaunches& sum = launched[kernel.substr(0, kernel.find(' '))];
    sum.launches += launches.launches;
    sum.blocks += launches.blocks;
  }
  bool same = true;
  for (const auto& [operation, launches] : launched) {
    // The emulator has no library: all products of bf16 are linear_step, and nothing finishes them.
    if (operation == "linear_step" || operation == "linear_finish") continue;
    const KernelCounts& c = counted.at(operation);
    if (c.launches == launches.launches && c.blocks == static_cast<int64_t>(launches.blocks))
      continue;
    std::printf("%s: %lld launches of %lld blocks, the model has %lld of %.0f\n", operation.c_str(),
                static_cast<long long>(c.launches), static_cast<long long>(c.blocks),
                static_cast<long long>(launches.launches), launches.blocks);
    same = false;
  }
  return same;
}

// Prompts and steps with look-ahead and without; texts of both methods of the long convolution.
bool CompareGrids() {
  const std::function<void(Backend&)> works[] = {
      [](Backend& b) { GenerateSmall(b, DType::kBF16, 2, 300); },
      [](Backend& b) { GenerateSmall(b, DType::kBF16, 33, 16); },
      [](Backend& b) { GenerateSmall(b, DType::kI8, 2, 300); },
      [](Backend& b) { EncodeSmall(b, DType::kBF16, 128, 2, 128); },
      [](Backend& b) { EncodeSmall(b, DType::kBF16, 32, 1, 512); }};
  bool same = true;
  for (const auto& work : works) {
    CudaBackend cuda;
    work(cuda);
    const auto counted = cuda_on_cpu::Counts();
    ModelledBackend modelled(*RatesOf("h100"));
    work(modelled);
    same &= SameGrids(counted, modelled);
  }
  return same;
}

int CompareUnits() {
  bool near = CompareGrids();
  std::printf("%-20s %9s %9s %9s %9s %6s %6s %9s %10s\n", "of a unit", "L2", "L1", "shared", "mma",
              "read", "write", "DRAM/least", "shared/least");
  for (const UnitShape& shape : UnitShapes()) {
    shape.run();
    const KernelCounts c = cuda_on_cpu::Counts().at(shape.operation);
    const auto of_unit = [&](int64_t count) { return static_cast<double>(count) / shape.units; };
    const double l2 = of_unit(c.l2_sectors);
    const double l1 = of_unit(c.Of(Access::kGlobalRead).units + c.Of(Access::kGlobalWrite).units);
    const double wavefronts =
        of_unit(c.Of(Access::kSharedRead).units + c.Of(Access::kSharedWrite).units);
    const double mma = of_unit(Products(c));
    const MemoryCounts& read = c.Of(Access::kGlobalRead);
    const MemoryCounts& written = c.Of(Access::kGlobalWrite);
    const MemoryCounts& in = c.Of(Access::kSharedRead);
    const MemoryCounts& out = c.Of(Access::kSharedWrite);
    std::printf("%-20s %9.5g %9.5g %9.5g %9.5g %5.0f%% %5.0f%% %9.2f %10.2f\n", shape.kernel, l2,
                l1, wavefronts, mma, 100 * Ratio(read.bytes, 32 * read.units),
                100 * Ratio(written.bytes, 32 * written.units),
                Ratio(c.dram_read + c.dram_written, c.distinct_read + c.distinct_written),
                Ratio(in.units + out.units, in.least_units + out.least_units));
    const KernelUnits& table = UnitsOf(shape.kernel);
    near &= IsNear(shape, "L2 sectors", table.l2_sectors, l2);
    near &= IsNear(shape, "L1 sectors", table.l1_sectors, l1);
    near &= IsNear(shape, "shared wavefronts", table.wavefronts, wavefronts);
    near &= IsNear(shape, "mma", table.mma, mma);
  }
  return near ? 0 : 1;
}

void Print(const char* title) {
  std::printf("\n%s\n%-28s %5s %6s %10s %4s %10s %4s %7s %10s %10s %7s %8s\n", title, "operation",
              "runs", "blocks", "read", "use", "written", "use", "reloads", "DRAM/least",
              "wavefronts", "/least", "mma");
  for (const auto& [operation, c] : cuda_on_cpu::Counts()) {
    const MemoryCounts& read = c.Of(Access::kGlobalRead);
    const MemoryCounts& written = c.Of(Access::kGlobalWrite);
    const MemoryCounts& in = c.Of(Access::kSharedRead);
    const MemoryCounts& out = c.Of(Access::kSharedWrite);
    std::printf(
        "%-28s %5lld %6lld %10lld %3.0f%% %10lld %3.0f%% %6.0f%% %10.2f %10lld %7.2f %8lld\n",
        operation.c_str(), static_cast<long long>(c.launches), static_cast<long long>(c.blocks),
        static_cast<long long>(read.bytes), 100 * Ratio(read.bytes, 32 * read.units),
        static_cast<long long>(written.bytes), 100 * Ratio(written.bytes, 32 * written.units),
        100 * Ratio(read.reloaded, read.units),
        Ratio(c.dram_read + c.dram_written, c.distinct_read + c.distinct_written),
        static_cast<long long>(in.units + out.units),
        Ratio(in.units + out.units, in.least_units + out.least_units),
        static_cast<long long>(Products(c)));
  }
}

int PrintAll(const std::vector<std::string>& explained) {
  for (const CountedShape& shape : CountedShapes()) {
    shape.run();
    Print(shape.name);
    const auto counts = cuda_on_cpu::Counts();
    for (const std::string& operation : explained) {
      const auto found = counts.find(operation);
      if (found == counts.end()) continue;
      std::printf("%s\n", operation.c_str());
      for (const std::string& line : Inefficiencies(found->second)) {
        std::printf("  %s\n", line.c_str());
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace hippodrome

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (argc == 2 && arguments[0] == "--units") return hippodrome::CompareUnits();
  if (argc == 3 && arguments[0] == "--check") return hippodrome::Check(argv[2]);
  if (argc == 3 && arguments[0] == "--write") return hippodrome::Write(argv[2]);
  return hippodrome::PrintAll(arguments);
}
