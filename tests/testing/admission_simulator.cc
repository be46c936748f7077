#include "tests/testing/admission_simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string_view>
#include <utility>

#include "server/batching/admission.h"

namespace hippodrome {
namespace {

// A request that waits looks again after so many ticks if nothing happens: a client may be alone.
constexpr int64_t kLook = 8;

class Simulation {
 public:
  Simulation(const Workload& workload, AdmissionRule rule)
      : workload_(workload), rule_(rule), line_(workload.capacity, workload.max_client_share) {
    result_.wait.resize(workload.requests.size());
    for (const SimulatedRequest& r : workload.requests) {
      callers_.emplace_back(Api::kHttp, "client " + std::to_string(r.client));
      callers_.back().number = static_cast<uint64_t>(r.call);
      callers_.back().background = r.background;
      longest_ = std::max(longest_, r.prompt_tokens + r.max_tokens);
    }
  }

  SimulationResult Run() {
    for (bool goes_on = true; goes_on && result_.fault.empty(); goes_on = GoOn()) {
      EndRunning();
      CancelWaiting();
      Arrive();
      if (!waiting_.empty()) Start();
      Check();
    }
    result_.end = now_;
    if (now_ > 0) result_.busy /= static_cast<double>(now_);
    return std::move(result_);
  }

 private:
  struct Waiting {
    AdmissionLine::Ticket ticket;
    size_t request;
    size_t ahead;  // of those in no background: that were here before it or have started since
  };
  struct Running {
    size_t request;
    int64_t start;
    int64_t end;
  };

  const SimulatedRequest& Of(size_t request) const { return workload_.requests[request]; }
  AdmissionLine::Clock::time_point Time() const {
    return AdmissionLine::Clock::time_point(std::chrono::seconds(now_));
  }

  void Fault(size_t request, const std::string& what) {
    if (!result_.fault.empty()) return;
    result_.fault = fmt::format("tick {}, request {}: {}", now_, request, what);
  }

  static int64_t PrefillTicks(const SimulatedRequest& r) {
    return (r.prompt_tokens + r.prefill_speed - 1) / r.prefill_speed;
  }

  int64_t Remaining(const Running& running) const {
    const SimulatedRequest& r = Of(running.request);
    const int64_t ticks = now_ - running.start;
    const int64_t prefilled = std::min(r.prompt_tokens, ticks * r.prefill_speed);
    const int64_t made = std::max<int64_t>(ticks - PrefillTicks(r), 0);
    return r.prompt_tokens - prefilled + r.max_tokens - made;
  }

  void EndRunning() {
    std::erase_if(running_, [&](const Running& running) {
      if (running.end > now_) return false;
      used_ = Free(used_, Of(running.request).needs);
      return true;
    });
  }

  void CancelWaiting() {
    std::erase_if(waiting_, [&](const Waiting& waiting) {
      if (Of(waiting.request).cancel.value_or(now_ + 1) > now_) return false;
      line_.Remove(waiting.ticket);
      if (promised_ && promised_->first == waiting.ticket) promised_.reset();
      return true;
    });
  }

  void Arrive() {
    for (; next_ < workload_.requests.size() && Of(next_).arrival <= now_; ++next_) {
      const SimulatedRequest& r = Of(next_);
      const auto ticket =
          line_.Add(callers_[next_], r.needs, r.prompt_tokens + r.max_tokens, Time());
      const auto ahead = std::count_if(waiting_.begin(), waiting_.end(),
                                       [&](const Waiting& w) { return !Of(w.request).background; });
      waiting_.push_back({ticket, next_, static_cast<size_t>(ahead)});
      if (!r.background && promised_in_background_) promised_.reset();
    }
  }

  void Start() {
    const Footprint free = Free(workload_.capacity, used_);
    if (rule_ == AdmissionRule::kFirstCome) {
      StartFirstCome(free);
      return;
    }
    std::vector<Claim> claims;
    for (const Running& running : running_) {
      claims.push_back({Of(running.request).needs, Remaining(running),
                        callers_[running.request].client, Of(running.request).background});
    }
    const size_t started = running_.size();
    for (const auto ticket : line_.Take(claims, free, Time())) Begin(ticket);
    KeepPromise();
    CheckBackground(started);
  }

  static bool Within(const Footprint& needs, const Footprint& limit) {
    return needs.slots <= limit.slots && needs.pages <= limit.pages;
  }
  static void Add(Footprint& sum, const Footprint& needs) {
    sum.slots += needs.slots;
    sum.pages += needs.pages;
    sum.bytes += needs.bytes;
  }

  // running_[started] and those behind it have just started.
  void CheckBackground(size_t started) {
    Footprint held;
    int64_t sequences = 0;
    bool any_started = false;
    for (size_t i = 0; i < running_.size(); ++i) {
      if (!Of(running_[i].request).background) continue;
      Add(held, Of(running_[i].request).needs);
      ++sequences;
      any_started = any_started || i >= started;
    }
    const Footprint& capacity = workload_.capacity;
    if (sequences > 1 && !Within(held, {capacity.slots / 2, capacity.pages / 2, 0})) {
      Fault(running_.back().request, "more is in the background than its limit");
    }
    if (!any_started) return;
    Footprint wanted;
    for (const Waiting& waiting : waiting_) {
      const bool promised = promised_ && promised_->first == waiting.ticket;
      if (!Of(waiting.request).background && !promised) Add(wanted, Of(waiting.request).needs);
    }
    if (!Within(wanted, Free(capacity, used_))) {
      Fault(running_.back().request, "took room that others wait for");
    }
  }

  void StartFirstCome(Footprint free) {
    std::vector<AdmissionLine::Ticket> starting;
    for (const Waiting& waiting : waiting_) {
      const Footprint& needs = Of(waiting.request).needs;
      if (needs.slots > free.slots || needs.pages > free.pages) break;
      free = Free(free, needs);
      starting.push_back(waiting.ticket);
    }
    for (const auto ticket : starting) Begin(ticket);
  }

  void Begin(AdmissionLine::Ticket ticket) {
    const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                    [&](const Waiting& w) { return w.ticket == ticket; });
    const SimulatedRequest& r = Of(found->request);
    const int64_t wait = now_ - r.arrival;
    result_.wait[found->request] = wait;
    result_.overtakings += found == waiting_.begin() ? 0 : 1;
    if (promised_ && promised_->first == ticket) {
      if (now_ > promised_->second) Fault(found->request, "starts after it was promised room");
      promised_.reset();
    }
    if (!r.background && wait > 3 * longest_ * static_cast<int64_t>(found->ahead + 1)) {
      Fault(found->request, fmt::format("has waited {} ticks for {}", wait, found->ahead));
    }
    int64_t end = now_ + PrefillTicks(r) + r.tokens;
    if (r.cancel) end = std::min(end, std::max(*r.cancel, now_ + 1));
    running_.push_back({found->request, now_, end});
    Add(used_, r.needs);
    waiting_.erase(found);
    for (Waiting& waiting : waiting_) {
      waiting.ahead += !r.background && waiting.request < running_.back().request;
    }
  }

  void KeepPromise() {
    const auto& promise = line_.promise();
    if (promised_ && (!promise || promise->ticket != promised_->first)) {
      Fault(promised_->first, "lost its promise");
    }
    if (!promise) return;
    const int64_t by = now_ + promise->bound;
    if (promised_ && by > promised_->second) Fault(promise->ticket, "its promise moved back");
    if (promised_ && now_ >= promised_->second) Fault(promise->ticket, "was not given its room");
    promised_ = {promise->ticket, by};
    CheckPromised();
  }

  void CheckPromised() {
    bool others = false;
    for (const Waiting& waiting : waiting_) {
      const bool background = Of(waiting.request).background;
      if (waiting.ticket == promised_->first) promised_in_background_ = background;
      others = others || !background;
    }
    if (promised_in_background_ && others) Fault(0, "the background was promised room");
  }

  void Check() {
    const Footprint& capacity = workload_.capacity;
    if (used_.slots > capacity.slots || used_.pages > capacity.pages ||
        used_.bytes > capacity.bytes) {
      Fault(0, "more is in use than there is");
    }
    if (running_.empty() && !waiting_.empty()) {
      Fault(waiting_.front().request, "waits while everything is free");
    }
  }

  // To the next event; false when there is none.
  bool GoOn() {
    if (waiting_.empty() && running_.empty() && next_ == workload_.requests.size()) return false;
    int64_t then = waiting_.empty() ? std::numeric_limits<int64_t>::max() : now_ + kLook;
    if (next_ < workload_.requests.size()) then = std::min(then, Of(next_).arrival);
    for (const Running& running : running_) then = std::min(then, running.end);
    for (const Waiting& waiting : waiting_) {
      then = std::min(then, std::max(Of(waiting.request).cancel.value_or(then), now_ + 1));
    }
    if (promised_) then = std::min(then, std::max(promised_->second, now_ + 1));
    result_.busy += static_cast<double>(then - now_) * static_cast<double>(used_.pages) /
                    static_cast<double>(std::max<int64_t>(workload_.capacity.pages, 1));
    now_ = then;
    return true;
  }

  const Workload& workload_;
  const AdmissionRule rule_;
  AdmissionLine line_;
  std::vector<Caller> callers_;
  int64_t longest_ = 0;
  SimulationResult result_;
  int64_t now_ = 0;
  size_t next_ = 0;
  std::vector<Waiting> waiting_;  // by arrival
  std::vector<Running> running_;
  Footprint used_;
  std::optional<std::pair<AdmissionLine::Ticket, int64_t>> promised_;  // by when
  bool promised_in_background_ = false;
};

class Random {
 public:
  explicit Random(uint64_t seed) : generator_(seed) {}
  int64_t Upto(int64_t most) {  // [1, most]
    return 1 + static_cast<int64_t>(generator_() % static_cast<uint64_t>(most));
  }
  bool OneIn(uint64_t n) { return generator_() % n == 0; }
  // Small more often than large.
  int64_t Skewed(int64_t most) { return Upto(Upto(Upto(most))); }

 private:
  std::mt19937_64 generator_;
};

}  // namespace

Workload RandomWorkload(uint64_t seed) {
  constexpr int64_t kSlotBytes = 100;
  constexpr int64_t kPageBytes = 10;
  Random random(seed);
  Workload workload;
  const int64_t slots = random.Upto(8);
  const int64_t pages = random.OneIn(8) ? 0 : random.Upto(64);
  workload.capacity = {slots, pages, slots * kSlotBytes + pages * kPageBytes};
  workload.max_client_share = static_cast<double>(random.Upto(4)) / 4;
  const int64_t clients = random.Upto(4);
  const int64_t gap = random.Upto(20);
  const int64_t count = random.Upto(32);
  int64_t now = 0;
  for (int call = 0; std::ssize(workload.requests) < count; ++call) {
    if (!random.OneIn(3)) now += random.Upto(gap);
    const auto client = static_cast<int>(random.Upto(clients));
    for (int64_t n = random.OneIn(6) ? random.Upto(12) : 1; n > 0; --n) {
      SimulatedRequest r{.arrival = now, .client = client, .call = call};
      const int64_t needed = pages == 0 ? 0 : random.Skewed(pages);
      r.needs = {1, needed, kSlotBytes + needed * kPageBytes};
      r.prompt_tokens = random.Skewed(40);
      r.max_tokens = random.Skewed(80);
      r.prefill_speed = random.Upto(8);
      r.tokens = random.OneIn(2) ? random.Upto(r.max_tokens) : r.max_tokens;
      if (random.OneIn(10)) r.cancel = now + random.Upto(100);
      workload.requests.push_back(r);
    }
  }
  return workload;
}

SimulationResult Simulate(const Workload& workload, AdmissionRule rule) {
  return Simulation(workload, rule).Run();
}

}  // namespace hippodrome
