#include "server/batching/admission.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "absl/cleanup/cleanup.h"

namespace hippodrome {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

bool Fits(const Footprint& needs, const Footprint& free) {
  return needs.slots <= free.slots && needs.pages <= free.pages && needs.bytes <= free.bytes;
}

void Give(Footprint& free, const Footprint& needs) {
  free.slots += needs.slots;
  free.pages += needs.pages;
  free.bytes += needs.bytes;
}

// Part of the slots and pages.
Footprint Part(const Footprint& capacity, double share) {
  const auto part = [&](int64_t whole) {
    return static_cast<int64_t>(static_cast<double>(whole) * share);
  };
  return {part(capacity.slots), part(capacity.pages), kUnlimited};
}

// What each client, and the background, holds, or will before those that are behind in the line.
class Shares {
 public:
  Shares(std::span<const Claim> running, const AdmissionLimits& limits) : limits_(limits) {
    for (const Claim& claim : running) Add(claim);
  }

  // Counts the claim; true if its client, or the background, may have it.
  bool Add(const Claim& claim) {
    Share& share = claim.background ? background_ : held_[claim.client];
    const Footprint& limit = claim.background ? limits_.background : limits_.client;
    const bool first = share.slots == 0;
    share.slots += claim.needs.slots;
    share.pages += claim.needs.pages;
    return first || (share.slots <= limit.slots && share.pages <= limit.pages);
  }

 private:
  struct Share {
    int64_t slots = 0;
    int64_t pages = 0;
  };
  const AdmissionLimits limits_;
  std::unordered_map<std::string_view, Share> held_;
  Share background_;
};

// When there is room for somebody, and what is left over then.
struct Room {
  int64_t ticks = 0;
  Footprint left;
};

Room RoomFor(const Footprint& needs, std::vector<Claim> running, Footprint free) {
  std::sort(running.begin(), running.end(),
            [](const Claim& a, const Claim& b) { return a.ticks < b.ticks; });
  for (auto claim = running.begin(); claim != running.end();) {
    const int64_t ticks = claim->ticks;
    for (; claim != running.end() && claim->ticks == ticks; ++claim) Give(free, claim->needs);
    if (Fits(needs, free)) return {ticks, Free(free, needs)};
  }
  return {};  // never: then nobody may pass
}

// One look at a line: who starts, and who is promised room.
class Admitting {
 public:
  Admitting(std::span<const Claim> line, std::span<const Claim> running, const Footprint& free)
      : line_(line), running_(running), free_(free) {}

  // Whether line[i] starts. If it does not fit, and `may_wait`, it is promised room.
  bool Starts(size_t i, bool may_wait) {
    const Claim& claim = line_[i];
    const bool fits = Fits(claim.needs, free_);
    if (!fits && may_wait && !admission_.promised) Promise(i);
    if (!fits) return false;
    if (admission_.promised && claim.ticks > room_.ticks) {
      if (!Fits(claim.needs, room_.left)) return false;
      room_.left = Free(room_.left, claim.needs);
    }
    free_ = Free(free_, claim.needs);
    admission_.starting.push_back(i);
    return true;
  }

  // Keeps what line[i] needs, now and behind the promised. False if it is not there.
  bool Keep(size_t i) {
    if (admission_.promised == i) return true;
    const Footprint& needs = line_[i].needs;
    if (!Fits(needs, free_)) return false;
    free_ = Free(free_, needs);
    room_.left = Fits(needs, room_.left) ? Free(room_.left, needs) : Footprint();
    return true;
  }

  Admission& admission() { return admission_; }

 private:
  void Promise(size_t i) {
    std::vector<Claim> ahead(running_.begin(), running_.end());
    for (const size_t place : admission_.starting) ahead.push_back(line_[place]);
    room_ = RoomFor(line_[i].needs, std::move(ahead), free_);
    admission_.promised = i;
    admission_.bound = room_.ticks;
  }

  const std::span<const Claim> line_;
  const std::span<const Claim> running_;
  Footprint free_;
  Room room_;  // for the promised
  Admission admission_;
};

}  // namespace

Footprint Free(const Footprint& capacity, const Footprint& used) {
  return {.slots = capacity.slots - used.slots,
          .pages = capacity.pages - used.pages,
          .bytes = capacity.bytes - used.bytes};
}

Admission Admit(std::span<const Claim> line, std::span<const Claim> running, Footprint free,
                const AdmissionLimits& limits, bool keeps_promise) {
  Shares shares(running, limits);
  Admitting admitting(line, running, free);
  std::vector<size_t> waiting;  // and not in the background
  size_t i = 0;
  for (; i < line.size() && !line[i].background; ++i) {
    const bool allowed = shares.Add(line[i]) || (i == 0 && keeps_promise);
    if (!allowed || !admitting.Starts(i, true)) waiting.push_back(i);
  }
  const bool kept = std::all_of(waiting.begin(), waiting.end(),
                                [&](size_t place) { return admitting.Keep(place); });
  for (; kept && i < line.size(); ++i) {
    if (shares.Add(line[i])) admitting.Starts(i, waiting.empty());
  }
  return std::move(admitting.admission());
}

AdmissionLine::AdmissionLine(const Footprint& capacity, double max_client_share)
    : capacity_(capacity),
      shared_limit_(Part(capacity, max_client_share)),
      background_limit_(Part(capacity, kBackgroundShare)) {}

AdmissionLine::Ticket AdmissionLine::Add(const Caller& caller, const Footprint& needs,
                                         int64_t ticks, Clock::time_point now) {
  Saw(caller, now);
  const auto share = [](int64_t part, int64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  };
  const double cost =
      std::max(share(needs.slots, capacity_.slots), share(needs.pages, capacity_.pages)) *
      static_cast<double>(ticks);
  const Ticket ticket = next_ticket_++;
  const Queue::Entry& entry = queue_.Add(caller, cost, {ticket, needs, ticks, caller.background});
  absl::Cleanup leave = [&] { queue_.Remove(entry); };  // where memory runs out
  entries_.emplace(ticket, &entry);
  std::move(leave).Cancel();
  // Nobody in the background keeps a promise while others wait.
  if (!caller.background && promise_ && entries_.at(promise_->ticket)->item.background) {
    promise_.reset();
  }
  return ticket;
}

void AdmissionLine::Remove(Ticket ticket) {
  const auto entry = entries_.find(ticket);
  if (entry == entries_.end()) return;
  queue_.Remove(*entry->second);
  entries_.erase(entry);
  if (promise_ && promise_->ticket == ticket) promise_.reset();
}

void AdmissionLine::Saw(const Caller& caller, Clock::time_point now) {
  if (caller.background) return;
  if (caller.client != latest_client_) {
    other_ = latest_;
    latest_client_ = caller.client;
  }
  latest_ = now;
}

AdmissionLimits AdmissionLine::Limits(Clock::time_point now) const {
  const bool alone = queue_.interactive().clients() <= 1 && (!other_ || now - *other_ > kPresence);
  return {alone ? Footprint{kUnlimited, kUnlimited, kUnlimited} : shared_limit_, background_limit_};
}

// Who was promised room comes first.
std::vector<const AdmissionLine::Queue::Entry*> AdmissionLine::Line() const {
  std::vector<const Queue::Entry*> line = queue_.Line();
  if (!promise_) return line;
  const auto promised = std::find_if(line.begin(), line.end(), [&](const auto* entry) {
    return entry->item.ticket == promise_->ticket;
  });
  std::rotate(line.begin(), promised, promised + 1);
  return line;
}

std::vector<AdmissionLine::Ticket> AdmissionLine::Take(std::span<const Claim> running,
                                                       const Footprint& free,
                                                       Clock::time_point now) {
  const std::vector<const Queue::Entry*> line = Line();
  std::vector<Claim> claims;
  claims.reserve(line.size());
  for (const Queue::Entry* entry : line) {
    const Request& request = entry->item;
    claims.push_back({request.needs, request.ticks, entry->client(), request.background});
  }
  const Admission admission = Admit(claims, running, free, Limits(now), promise_.has_value());
  promise_.reset();
  if (admission.promised) promise_ = {line[*admission.promised]->item.ticket, admission.bound};
  std::vector<Ticket> tickets;
  tickets.reserve(admission.starting.size());
  for (const size_t place : admission.starting) {
    tickets.push_back(line[place]->item.ticket);
    entries_.erase(tickets.back());
    queue_.Take(*line[place]);
  }
  return tickets;
}

}  // namespace hippodrome
