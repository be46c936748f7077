#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "tests/cuda_on_cpu/counters.h"

namespace cuda_on_cpu {
namespace {

constexpr double kNeededSectors = 0.9;
constexpr double kWavefronts = 1.15;
constexpr double kReloads = 0.15;
constexpr double kSector = 32;

struct Inefficiency {
  int64_t cost;  // units that are not needed
  std::string what;
};

template <typename... Arguments>
std::string Format(const char* format, Arguments... arguments) {
  char text[256];
  std::snprintf(text, sizeof(text), format, arguments...);
  return text;
}

bool IsShared(Access access) {
  return access == Access::kSharedRead || access == Access::kSharedWrite;
}

void AddGlobal(const std::string& place, bool read, const MemoryCounts& counts,
               std::vector<Inefficiency>& found) {
  const auto units = static_cast<double>(counts.units);
  if (static_cast<double>(counts.least_units) < kNeededSectors * units) {
    const double useful = static_cast<double>(counts.bytes) / (units * kSector);
    found.push_back(
        {counts.units - counts.least_units,
         place + Format("uncoalesced: %s %.1f of each 32 bytes, %lld sectors for %lld bytes",
                        read ? "reads" : "writes", useful * kSector,
                        static_cast<long long>(counts.units),
                        static_cast<long long>(counts.bytes))});
  }
  if (static_cast<double>(counts.reloaded) > kReloads * units) {
    found.push_back(
        {counts.reloaded, place + Format("reloads: the block has read %lld of %lld sectors before",
                                         static_cast<long long>(counts.reloaded),
                                         static_cast<long long>(counts.units))});
  }
}

void AddShared(const std::string& place, const MemoryCounts& counts,
               std::vector<Inefficiency>& found) {
  const double times = static_cast<double>(counts.units) / static_cast<double>(counts.least_units);
  if (times <= kWavefronts) return;
  found.push_back({counts.units - counts.least_units,
                   place + Format("bank conflicts: %lld wavefronts, %.1f times the least",
                                  static_cast<long long>(counts.units), times)});
}

}  // namespace

std::vector<std::string> Inefficiencies(const KernelCounts& counts) {
  // The copies of a line that compilers make of loops and templates count together.
  std::map<std::pair<std::string, Access>, MemoryCounts> accesses;
  for (const AccessSite& site : counts.accesses) {
    accesses[{SourceLines(site.place) + ": ", site.access}] += site.counts;
  }
  std::map<std::string, BarrierSite> barriers;
  for (const BarrierSite& site : counts.barrier_sites) {
    BarrierSite& barrier = barriers[SourceLines(site.place) + ": "];
    barrier.count += site.count;
    barrier.needed += site.needed;
  }
  std::vector<Inefficiency> found;
  for (const auto& [site, sum] : accesses) {
    const auto& [place, access] = site;
    if (IsShared(access)) {
      AddShared(place, sum, found);
    } else {
      AddGlobal(place, access == Access::kGlobalRead, sum, found);
    }
  }
  for (const auto& [place, barrier] : barriers) {
    if (barrier.needed > 0) continue;
    found.push_back(
        {barrier.count,
         place + Format("needless barrier: %lld times no thread touches what another wrote",
                        static_cast<long long>(barrier.count))});
  }
  std::ranges::stable_sort(found, std::greater<>(), &Inefficiency::cost);
  std::vector<std::string> lines;
  for (Inefficiency& each : found) lines.push_back(std::move(each.what));
  return lines;
}

}  // namespace cuda_on_cpu
