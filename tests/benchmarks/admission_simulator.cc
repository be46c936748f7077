// admission_simulator WORKLOADS PLOT.svg: runs random workloads of admission, then one long one
// first come, first served and with backfilling, and draws who waited for how long.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "tests/testing/admission_simulator.h"
#include "tools/plots/svg.h"

namespace hippodrome {
namespace {

bool RunRandomWorkloads(uint64_t count) {
  const auto start = std::chrono::steady_clock::now();
  int64_t requests = 0;
  int64_t ended = 0;
  int64_t cancelled = 0;
  int64_t overtakings = 0;
  int64_t longest_wait = 0;
  for (uint64_t seed = 0; seed < count; ++seed) {
    const Workload workload = RandomWorkload(seed);
    const SimulationResult result = Simulate(workload, AdmissionRule::kBackfilling);
    if (!result.fault.empty()) {
      fmt::print("workload {}: {}\n", seed, result.fault);
      return false;
    }
    requests += std::ssize(workload.requests);
    overtakings += result.overtakings;
    for (const auto& wait : result.wait) {
      (wait ? ended : cancelled) += 1;
      longest_wait = std::max(longest_wait, wait.value_or(0));
    }
  }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  fmt::print(
      "{} random workloads in {:.1f} s: {} requests, of which {} were admitted and ended, and "
      "{} were cancelled while they waited\n",
      count, time.count(), requests, ended, cancelled);
  fmt::print("more in use than there is: 0; promises broken: 0; waits beyond the bound: 0\n");
  fmt::print("requests that passed somebody who had come before: {}; longest wait: {} ticks\n",
             overtakings, longest_wait);
  return ended + cancelled == requests;
}

// ---- Waiting time against size
// -------------------------------------------------------------------

constexpr Footprint kCapacity{64, 4096, 64 + 4096};
constexpr int64_t kPageTokens = 16;
constexpr int kSizes = 11;  // from 1, 2, 4, ... 1024 pages

// Most requests are short, some take half of the pages; on average they would fill three quarters
// of the pages.
Workload LongWorkload() {
  constexpr int64_t kRequests = 30000;
  constexpr double kLoad = 0.75;
  std::mt19937_64 random(1);
  Workload workload{.capacity = kCapacity};
  double work = 0;  // page ticks
  std::uniform_real_distribution<double> uniform;
  for (int64_t i = 0; i < kRequests; ++i) {
    const double most = uniform(random) < 0.9 ? 5 : kSizes;
    const auto pages = static_cast<int64_t>(std::exp2(uniform(random) * most));
    const int64_t tokens = pages * kPageTokens;
    const int64_t prompt = tokens / 4;
    workload.requests.push_back({.call = static_cast<int>(i),
                                 .needs = {1, pages, 1 + pages},
                                 .prompt_tokens = prompt,
                                 .max_tokens = tokens - prompt,
                                 .tokens = tokens - prompt});
    work += static_cast<double>(pages * tokens);
  }
  const double ticks = work / kLoad / static_cast<double>(kCapacity.pages);
  std::exponential_distribution<double> gap(static_cast<double>(kRequests) / ticks);
  double now = 0;
  for (SimulatedRequest& request : workload.requests) {
    request.arrival = static_cast<int64_t>(now += gap(random));
  }
  return workload;
}

struct Waits {
  std::string name;
  std::string colour;
  std::array<std::vector<int64_t>, kSizes> by_size;  // sorted

  double Mean(int size) const {
    double sum = 0;
    for (const int64_t wait : by_size[size]) sum += static_cast<double>(wait);
    return sum / static_cast<double>(std::max<size_t>(by_size[size].size(), 1));
  }
  int64_t Percentile99(int size) const {
    const std::vector<int64_t>& waits = by_size[size];
    return waits.empty() ? 0 : waits[waits.size() * 99 / 100];
  }
};

bool Measure(const Workload& workload, AdmissionRule rule, Waits& waits) {
  const SimulationResult result = Simulate(workload, rule);
  if (!result.fault.empty()) {
    fmt::print("{}: {}\n", waits.name, result.fault);
    return false;
  }
  for (size_t i = 0; i < workload.requests.size(); ++i) {
    const auto pages = static_cast<uint64_t>(workload.requests[i].needs.pages);
    waits.by_size[std::bit_width(pages) - 1].push_back(*result.wait[i]);
  }
  for (std::vector<int64_t>& size : waits.by_size) std::sort(size.begin(), size.end());
  fmt::print("{}: all ended after {} ticks; {:.1f} % of the pages were in use\n", waits.name,
             result.end, 100 * result.busy);
  return true;
}

// The waits, from 1 tick to 10^6, against the sizes, both on logarithmic axes.
Drawing Plot(const std::vector<Waits>& all) {
  constexpr int kWidth = 640;
  constexpr int kHeight = 400;
  constexpr int kLeft = 70;
  constexpr int kTop = 30;
  constexpr int kDecades = 6;
  constexpr int kPlotWidth = kWidth - kLeft - 20;
  constexpr int kPlotHeight = kHeight - kTop - 60;
  const auto x = [&](int size) { return kLeft + (2 * size + 1) * kPlotWidth / (2 * kSizes); };
  const auto y = [&](double wait) {
    const double decades = std::log10(std::max(wait, 1.0)) / kDecades;
    return kTop + static_cast<int>(std::lround((1 - decades) * kPlotHeight));
  };
  Drawing drawing{kWidth, kHeight, SvgFrame(kLeft, kTop, kPlotWidth, kPlotHeight)};
  for (int decade = 0; decade <= kDecades; ++decade) {
    drawing.svg +=
        SvgText(kLeft - 6, y(std::pow(10, decade)) + 4, Label(std::pow(10, decade)), "end");
  }
  for (int size = 0; size < kSizes; ++size) {
    drawing.svg += SvgText(x(size), kTop + kPlotHeight + 18, std::to_string(1 << size), "middle");
  }
  drawing.svg +=
      SvgText(kLeft + kPlotWidth / 2, kHeight - 14, "pages of the request, and more", "middle");
  drawing.svg += SvgVerticalText(18, kTop + kPlotHeight / 2, "mean wait in ticks");
  int label = kLeft + 10;
  for (const Waits& waits : all) {
    std::string points;
    for (int size = 0; size < kSizes; ++size) {
      points += fmt::format("{},{} ", x(size), y(waits.Mean(size)));
      drawing.svg += SvgRect(x(size) - 3, y(waits.Mean(size)) - 3, 6, 6, waits.colour);
    }
    drawing.svg += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\"/>\n", points,
                               waits.colour);
    drawing.svg += SvgRect(label, 12, 10, 10, waits.colour) + SvgText(label + 16, 21, waits.name);
    label += 190;
  }
  return drawing;
}

bool CompareRules(const std::string& path) {
  const Workload workload = LongWorkload();
  std::vector<Waits> all = {{"first come, first served", "#c33", {}}, {"backfilling", "#36c", {}}};
  if (!Measure(workload, AdmissionRule::kFirstCome, all[0]) ||
      !Measure(workload, AdmissionRule::kBackfilling, all[1])) {
    return false;
  }
  fmt::print("{:>11} {:>9} {:>24} {:>24}\n", "pages", "requests", "first come: mean, p99",
             "backfilling: mean, p99");
  for (int size = 0; size < kSizes; ++size) {
    fmt::print("{:>5}-{:<5} {:>9} {:>14.1f} {:>9} {:>14.1f} {:>9}\n", 1 << size, (2 << size) - 1,
               all[0].by_size[size].size(), all[0].Mean(size), all[0].Percentile99(size),
               all[1].Mean(size), all[1].Percentile99(size));
  }
  std::ofstream file(path);
  file << SvgFile(Plot(all));
  return file.good();
}

}  // namespace
}  // namespace hippodrome

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: admission_simulator WORKLOADS PLOT.svg\n");
    return 2;
  }
  const bool good = hippodrome::RunRandomWorkloads(std::strtoull(argv[1], nullptr, 10)) &&
                    hippodrome::CompareRules(argv[2]);
  return good ? 0 : 1;
}
