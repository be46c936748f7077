#include "tests/cuda_on_cpu/counters.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "tests/cuda_on_cpu/block.h"
#include "tests/cuda_on_cpu/sector_cache.h"
#include "tests/cuda_on_cpu/trace.h"

// Where the linker puts the program's variables, static shared arrays among them.
extern "C" char __data_start, _end;

namespace cuda_on_cpu {
namespace {

constexpr int kBanks = 32;
constexpr uintptr_t kBankBytes = 4;

// What one lane did.
struct LaneAccess {
  const void* place;
  Access access;
  uint8_t bytes;
  int lane;
  size_t time;    // in the order of the lane
  size_t repeat;  // how often the lane was there before
  uintptr_t address;
};

using Request = std::span<const LaneAccess>;

// Distinct numbers, in order.
std::vector<uintptr_t> Distinct(std::vector<uintptr_t> numbers) {
  std::ranges::sort(numbers);
  const auto [begin, end] = std::ranges::unique(numbers);
  numbers.erase(begin, end);
  return numbers;
}

// The units of `size` bytes that the request touches.
std::vector<uintptr_t> Touched(Request request, uintptr_t size) {
  std::vector<uintptr_t> units;
  for (const LaneAccess& a : request) {
    for (uintptr_t u = a.address / size; u <= (a.address + a.bytes - 1) / size; ++u) {
      units.push_back(u);
    }
  }
  return Distinct(std::move(units));
}

int64_t DistinctBytes(Request request) { return static_cast<int64_t>(Touched(request, 1).size()); }

// Of lanes that the banks serve together.
int64_t WavefrontsOf(const std::vector<uintptr_t>& words) {
  std::array<int64_t, kBanks> of_bank = {};
  for (const uintptr_t word : words) ++of_bank[word % kBanks];
  return std::ranges::max(of_bank);
}

int64_t Wavefronts(Request request) {
  const int bytes = std::ranges::max(request, {}, &LaneAccess::bytes).bytes;
  const int together = bytes <= 4 ? kWarp : bytes <= 8 ? kWarp / 2 : kWarp / 4;
  // What one pass can give, it gives to all.
  int64_t wavefronts = WavefrontsOf(Touched(request, kBankBytes));
  if (wavefronts == 1) return 1;
  wavefronts = 0;
  for (auto begin = request.begin(); begin != request.end();) {
    const int part = begin->lane / together;
    auto end = begin;
    while (end != request.end() && end->lane / together == part) ++end;
    wavefronts += WavefrontsOf(Touched({begin, end}, kBankBytes));
    begin = end;
  }
  return wavefronts;
}

bool IsGlobal(Access access) {
  return access == Access::kGlobalRead || access == Access::kGlobalWrite;
}
bool IsWrite(Access access) {
  return access == Access::kGlobalWrite || access == Access::kSharedWrite;
}

// Which threads touched 4 bytes between two barriers.
class Touch {
 public:
  void Add(int thread, bool write) { Join(write ? writer_ : reader_, thread); }
  void Add(const Touch& other) {
    Join(writer_, other.writer_);
    Join(reader_, other.reader_);
  }
  // Whether one of them writes what another thread touches.
  bool Collides(const Touch& other) const {
    return Differ(writer_, other.writer_) || Differ(writer_, other.reader_) ||
           Differ(reader_, other.writer_);
  }

 private:
  static constexpr int kNobody = -1;
  static constexpr int kSeveral = -2;

  static void Join(int& who, int thread) {
    if (thread == kNobody || who == thread) return;
    who = who == kNobody ? thread : kSeveral;
  }
  static bool Differ(int a, int b) {
    return a != kNobody && b != kNobody && (a != b || a == kSeveral);
  }

  int reader_ = kNobody;
  int writer_ = kNobody;
};
using Touches = std::unordered_map<uintptr_t, Touch>;

bool Collide(const Touches& before, const Touches& after) {
  return std::ranges::any_of(after, [&](const auto& touch) {
    const auto found = before.find(touch.first);
    return found != before.end() && found->second.Collides(touch.second);
  });
}

// The counts of one kernel, as it runs.
class KernelTrace {
 public:
  KernelTrace(KernelCounts& counts, size_t cache_bytes) : counts_(counts), cache_(cache_bytes) {}

  void Begin(const KernelLaunch& launch) {
    ++counts_.launches;
    counts_.blocks += int64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
    counts_.threads += int64_t{launch.grid.x} * launch.grid.y * launch.grid.z * launch.block.x *
                       launch.block.y * launch.block.z;
  }

  void BeginBlock(const char* shared, size_t shared_bytes, int threads) {
    shared_begin_ = reinterpret_cast<uintptr_t>(shared);
    shared_end_ = shared_begin_ + shared_bytes;
    lanes_.assign(static_cast<size_t>(threads), {});
    before_.clear();
    during_.clear();
    last_barrier_ = nullptr;
    sectors_of_block_.clear();
  }

  void Add(int thread, uintptr_t address, size_t bytes, bool write, const void* place) {
    Access access;
    if (IsShared(address)) {
      access = write ? Access::kSharedWrite : Access::kSharedRead;
    } else if (IsAllocated(address)) {
      access = write ? Access::kGlobalWrite : Access::kGlobalRead;
      if (Block::Running().MustWait()) FailEarly(place);
    } else {
      return;  // the thread's own
    }
    std::vector<LaneAccess>& lane = lanes_[static_cast<size_t>(thread)];
    lane.push_back(
        {place, access, static_cast<uint8_t>(bytes), thread % kWarp, lane.size(), 0, address});
    for (uintptr_t word = address / 4; word <= (address + bytes - 1) / 4; ++word) {
      during_[word].Add(thread, write);
    }
  }

  void AddAtomic() { ++counts_.atomics; }

  void Add(WarpInstruction instruction) {
    int64_t* const counts[] = {&counts_.mma_bf16, &counts_.mma_f16, &counts_.mma_s8,
                               &counts_.shuffles, &counts_.votes,   &counts_.warp_barriers};
    ++*counts[static_cast<int>(instruction)];
  }

  // The lanes of a warp are at one place of the code: what they did belongs together.
  void EndOfWarp(int warp) {
    const size_t begin = static_cast<size_t>(warp) * kWarp;
    const size_t end = std::min(begin + kWarp, lanes_.size());
    std::vector<LaneAccess> all;
    for (size_t thread = begin; thread < end; ++thread) {
      std::unordered_map<const void*, size_t> repeats;
      for (LaneAccess& access : lanes_[thread]) {
        access.repeat = repeats[access.place]++;
        all.push_back(access);
      }
      lanes_[thread].clear();
    }
    Count(std::move(all), end - begin);
  }

  void EndOfInterval(const void* place, bool reduces) {
    for (size_t thread = 0; thread < lanes_.size(); thread += kWarp) {
      EndOfWarp(static_cast<int>(thread / kWarp));
    }
    bool needed = true;
    if (last_barrier_ != nullptr) {
      BarrierSite& site = barriers_[last_barrier_];
      needed = last_reduces_ || Collide(before_, during_);
      ++site.count;
      site.needed += needed ? 1 : 0;
    }
    if (needed) before_.clear();
    for (const auto& [word, touch] : during_) before_[word].Add(touch);
    during_.clear();
    last_barrier_ = place;
    last_reduces_ = reduces;
    if (place != nullptr) ++counts_.barriers;
  }

  void End() {
    cache_.WriteBack();
    counts_.distinct_read += cache_.distinct_read();
    counts_.distinct_written += cache_.distinct_written();
    counts_.dram_read += cache_.read_bytes();
    counts_.dram_written += cache_.written_bytes();
    AddSites();
  }

  void AddAllocation(uintptr_t begin, size_t bytes) { allocations_.emplace_back(begin, bytes); }

 private:
  using Site = std::pair<const void*, Access>;

  [[noreturn]] static void FailEarly(const void* place) {
    static std::string what;  // read once this fiber has gone
    what = "touches device memory before it has waited for the kernels before, at " +
           SourceLines(place);
    Block::Running().Fail(what.c_str());
  }

  static bool IsStatic(uintptr_t address) {
    const auto is_of = [&](const auto& variable) {
      const auto begin = reinterpret_cast<uintptr_t>(&variable);
      return address >= begin && address < begin + sizeof(variable);
    };
    return address >= reinterpret_cast<uintptr_t>(&__data_start) &&
           address < reinterpret_cast<uintptr_t>(&_end) && !is_of(threadIdx) && !is_of(blockIdx) &&
           !is_of(blockDim) && !is_of(gridDim);
  }
  bool IsShared(uintptr_t address) const {
    return (address >= shared_begin_ && address < shared_end_) || IsStatic(address);
  }
  bool IsAllocated(uintptr_t address) {
    const auto holds = [&](const auto& allocation) {
      return address >= allocation.first && address < allocation.first + allocation.second;
    };
    if (last_allocation_ < allocations_.size() && holds(allocations_[last_allocation_])) {
      return true;
    }
    const auto next =
        std::ranges::upper_bound(allocations_, address, {}, [](const auto& a) { return a.first; });
    if (next == allocations_.begin() || !holds(*(next - 1))) return false;
    last_allocation_ = static_cast<size_t>(next - 1 - allocations_.begin());
    return true;
  }

  // Requests in the order in which their first lane made them.
  void Count(std::vector<LaneAccess> all, size_t lanes) {
    std::ranges::sort(all, {}, [](const LaneAccess& a) {
      return std::tuple(a.place, a.access, a.repeat, a.lane);
    });
    std::vector<Request> requests;
    for (auto begin = all.begin(); begin != all.end();) {
      const auto end = std::find_if(begin, all.end(), [&](const LaneAccess& a) {
        return a.place != begin->place || a.access != begin->access || a.repeat != begin->repeat;
      });
      requests.emplace_back(begin, end);
      begin = end;
    }
    std::ranges::stable_sort(
        requests, {}, [](Request r) { return std::ranges::min(r, {}, &LaneAccess::time).time; });
    for (const Request request : requests) Count(request, lanes);
  }

  void Count(Request request, size_t lanes) {
    const Access access = request.front().access;
    MemoryCounts counts;
    counts.requests = 1;
    counts.partial = request.size() < lanes ? 1 : 0;
    counts.bytes = DistinctBytes(request);
    if (IsGlobal(access)) {
      CountSectors(request, counts);
    } else {
      counts.units = Wavefronts(request);
      counts.least_units = (counts.bytes + kBanks * kBankBytes - 1) / (kBanks * kBankBytes);
    }
    counts_.memory[static_cast<int>(access)] += counts;
    sites_[{request.front().place, access}] += counts;
  }

  void CountSectors(Request request, MemoryCounts& counts) {
    const bool write = IsWrite(request.front().access);
    counts.least_units = (counts.bytes + kSectorBytes - 1) / kSectorBytes;
    for (const uintptr_t sector : Touched(request, kSectorBytes)) {
      ++counts.units;
      if (write) {
        sectors_of_block_.erase(sector);
        ++counts_.l2_sectors;
      } else if (sectors_of_block_.insert(sector).second) {
        ++counts_.l2_sectors;
      } else {
        ++counts.reloaded;
      }
    }
    for (const LaneAccess& a : request) cache_.Touch(a.address, a.bytes, write);
  }

  void AddSites() {
    for (const auto& [site, counts] : sites_) {
      const auto known = std::ranges::find_if(counts_.accesses, [&](const AccessSite& a) {
        return a.place == site.first && a.access == site.second;
      });
      if (known != counts_.accesses.end()) {
        known->counts += counts;
      } else {
        counts_.accesses.push_back({site.first, site.second, counts});
      }
    }
    std::ranges::stable_sort(counts_.accesses, std::greater<>(),
                             [](const AccessSite& a) { return a.counts.units; });
    for (const auto& [place, barrier] : barriers_) {
      const auto known = std::ranges::find(counts_.barrier_sites, place, &BarrierSite::place);
      if (known != counts_.barrier_sites.end()) {
        known->count += barrier.count;
        known->needed += barrier.needed;
      } else {
        counts_.barrier_sites.push_back({place, barrier.count, barrier.needed});
      }
    }
  }

  KernelCounts& counts_;
  SectorCache cache_;
  std::vector<std::pair<uintptr_t, size_t>> allocations_;
  size_t last_allocation_ = 0;
  std::map<Site, MemoryCounts> sites_;
  std::map<const void*, BarrierSite> barriers_;

  // Of the block that runs.
  uintptr_t shared_begin_ = 0;
  uintptr_t shared_end_ = 0;
  std::vector<std::vector<LaneAccess>> lanes_;  // since they last met
  Touches before_;                              // since the last barrier that was needed, but one
  Touches during_;                              // since the last barrier
  const void* last_barrier_ = nullptr;
  bool last_reduces_ = false;
  std::unordered_set<uintptr_t> sectors_of_block_;
};

// Kernels run one at a time, under the lock of Launch().
std::mutex mutex;  // guards the next two
std::map<std::string, KernelCounts> all_counts;
size_t cache_bytes = size_t{50} << 20;
KernelTrace* running = nullptr;
// Hooks are called by host code too.
thread_local bool in_kernel = false;

}  // namespace

MemoryCounts& MemoryCounts::operator+=(const MemoryCounts& other) {
  requests += other.requests;
  partial += other.partial;
  bytes += other.bytes;
  units += other.units;
  least_units += other.least_units;
  reloaded += other.reloaded;
  return *this;
}

void TraceKernel(const KernelLaunch& launch) {
  const std::lock_guard lock(mutex);
  running = new KernelTrace(all_counts[launch.operation], cache_bytes);
  VisitAllocations([](uintptr_t begin, size_t bytes) { running->AddAllocation(begin, bytes); });
  running->Begin(launch);
}

void TraceKernelEnd() {
  const std::lock_guard lock(mutex);
  running->End();
  delete std::exchange(running, nullptr);
}

void TraceBlock(const char* shared, size_t shared_bytes, int threads) {
  running->BeginBlock(shared, shared_bytes, threads);
  in_kernel = true;
}

void TraceBarrier(const void* place, bool reduces) {
  running->EndOfInterval(place, reduces);
  if (place == nullptr) in_kernel = false;
}

void TraceMeeting(int warp) { running->EndOfWarp(warp); }

void TraceInstruction(WarpInstruction instruction) { running->Add(instruction); }

void TraceAccess(const void* address, size_t bytes, bool write, const void* place) {
  if (!in_kernel) return;
  in_kernel = false;  // what follows is no kernel's
  running->Add(Block::Running().current(), reinterpret_cast<uintptr_t>(address), bytes, write,
               place);
  in_kernel = true;
}

void MoveVector(void* to, const void* from, size_t bytes) {
  const void* place = __builtin_return_address(0);
  TraceAccess(from, bytes, false, place);
  TraceAccess(to, bytes, true, place);
  std::memcpy(to, from, bytes);
}

void TraceAtomic(const void* address, size_t bytes, const void* place) {
  if (!in_kernel) return;
  running->AddAtomic();
  TraceAccess(address, bytes, true, place);
}

std::map<std::string, KernelCounts> Counts() {
  const std::lock_guard lock(mutex);
  return all_counts;
}

void ResetCounts() {
  const std::lock_guard lock(mutex);
  all_counts.clear();
}

void SetCacheBytes(size_t bytes) {
  const std::lock_guard lock(mutex);
  cache_bytes = bytes;
}

std::string SourceLines(const void* place) {
  Dl_info info;
  if (dladdr(place, &info) == 0) return "?";
  // The place is where the call returns to.
  const auto offset =
      reinterpret_cast<uintptr_t>(place) - reinterpret_cast<uintptr_t>(info.dli_fbase) - 1;
  char command[4096];
  std::snprintf(command, sizeof(command), "addr2line -i -e '%s' 0x%zx", info.dli_fname, offset);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command, "r"), pclose);
  std::string lines;
  char line[1024];
  while (pipe != nullptr && std::fgets(line, sizeof(line), pipe.get()) != nullptr) {
    std::string text = std::filesystem::path(line).lexically_normal();
    text = text.substr(0, text.find_first_of(" \n"));
    if (text.starts_with(CUDA_ON_CPU_ROOT)) text.erase(0, sizeof(CUDA_ON_CPU_ROOT) - 1);
    if (text.starts_with("tests/cuda_on_cpu/include/")) continue;  // the language itself
    lines += (lines.empty() ? "" : " < ") + text;
  }
  return lines;
}

}  // namespace cuda_on_cpu
