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

// What each client holds, or will before those that are behind in the line.
class ClientShares {
 public:
  ClientShares(std::span<const Claim> running, const Footprint& limit) : limit_(limit) {
    for (const Claim& claim : running) Add(claim);
  }

  // Counts the claim; true if the client may have it.
  bool Add(const Claim& claim) {
    Share& share = held_[claim.client];
    const bool first = share.slots == 0;
    share.slots += claim.needs.slots;
    share.pages += claim.needs.pages;
    return first || (share.slots <= limit_.slots && share.pages <= limit_.pages);
  }

 private:
  struct Share {
    int64_t slots = 0;
    int64_t pages = 0;
  };
  const Footprint limit_;
  std::unordered_map<std::string_view, Share> held_;
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

}  // namespace

Footprint Free(const Footprint& capacity, const Footprint& used) {
  return {.slots = capacity.slots - used.slots,
          .pages = capacity.pages - used.pages,
          .bytes = capacity.bytes - used.bytes};
}

Admission Admit(std::span<const Claim> line, std::span<const Claim> running, Footprint free,
                const Footprint& client_limit, bool keeps_promise) {
  Admission admission;
  ClientShares shares(running, client_limit);
  Room room;  // for the promised
  for (size_t i = 0; i < line.size(); ++i) {
    const Claim& claim = line[i];
    const bool allowed = shares.Add(claim) || (i == 0 && keeps_promise);
    if (!allowed) continue;
    const bool fits = Fits(claim.needs, free);
    if (!admission.promised && !fits) {
      std::vector<Claim> ahead(running.begin(), running.end());
      for (const size_t place : admission.starting) ahead.push_back(line[place]);
      room = RoomFor(claim.needs, std::move(ahead), free);
      admission.promised = i;
      admission.bound = room.ticks;
    }
    if (!fits) continue;
    if (admission.promised && claim.ticks > room.ticks) {
      if (!Fits(claim.needs, room.left)) continue;
      room.left = Free(room.left, claim.needs);
    }
    free = Free(free, claim.needs);
    admission.starting.push_back(i);
  }
  return admission;
}

AdmissionLine::AdmissionLine(const Footprint& capacity, double max_client_share)
    : capacity_(capacity),
      shared_limit_{
          .slots = static_cast<int64_t>(static_cast<double>(capacity.slots) * max_client_share),
          .pages = static_cast<int64_t>(static_cast<double>(capacity.pages) * max_client_share),
          .bytes = kUnlimited} {}

AdmissionLine::Ticket AdmissionLine::Add(const Caller& caller, const Footprint& needs,
                                         int64_t ticks, Clock::time_point now) {
  Saw(caller.client, now);
  const auto share = [](int64_t part, int64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  };
  const double cost =
      std::max(share(needs.slots, capacity_.slots), share(needs.pages, capacity_.pages)) *
      static_cast<double>(ticks);
  const Queue::Entry& entry = queue_.Add(caller.client, caller.number, cost, {needs, ticks});
  absl::Cleanup leave = [&] { queue_.Remove(entry); };  // where memory runs out
  entries_.emplace(entry.arrival(), &entry);
  std::move(leave).Cancel();
  return entry.arrival();
}

void AdmissionLine::Remove(Ticket ticket) {
  const auto entry = entries_.find(ticket);
  if (entry == entries_.end()) return;
  queue_.Remove(*entry->second);
  entries_.erase(entry);
  if (promise_ && promise_->ticket == ticket) promise_.reset();
}

void AdmissionLine::Saw(const std::string& client, Clock::time_point now) {
  if (client != latest_client_) {
    other_ = latest_;
    latest_client_ = client;
  }
  latest_ = now;
}

Footprint AdmissionLine::Limit(Clock::time_point now) const {
  const bool alone = queue_.clients() <= 1 && (!other_ || now - *other_ > kPresence);
  return alone ? Footprint{kUnlimited, kUnlimited, kUnlimited} : shared_limit_;
}

// Who was promised room comes first.
std::vector<const AdmissionLine::Queue::Entry*> AdmissionLine::Line() const {
  std::vector<const Queue::Entry*> line = queue_.Line();
  if (!promise_) return line;
  const auto promised = std::find_if(line.begin(), line.end(), [&](const auto* entry) {
    return entry->arrival() == promise_->ticket;
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
    claims.push_back({entry->item.needs, entry->item.ticks, entry->client()});
  }
  const Admission admission = Admit(claims, running, free, Limit(now), promise_.has_value());
  promise_.reset();
  if (admission.promised) promise_ = {line[*admission.promised]->arrival(), admission.bound};
  std::vector<Ticket> tickets;
  tickets.reserve(admission.starting.size());
  for (const size_t place : admission.starting) {
    tickets.push_back(line[place]->arrival());
    entries_.erase(tickets.back());
    queue_.Take(*line[place]);
  }
  return tickets;
}

}  // namespace hippodrome
