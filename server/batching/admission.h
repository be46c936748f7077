// Who of those that wait is admitted: backfilling behind a fair line.
#ifndef HIPPODROME_SERVER_BATCHING_ADMISSION_H_
#define HIPPODROME_SERVER_BATCHING_ADMISSION_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/generator.h"
#include "server/batching/caller.h"
#include "server/batching/class_queue.h"

namespace hippodrome {

// What is free of `capacity`. REQUIRES: used <= capacity in every field.
Footprint Free(const Footprint& capacity, const Footprint& used);

// What a sequence reserves, and for how long at most. The clock counts ticks: one is over when each
// running sequence has taken in at least one more token of its prompt, or made a new one. So a
// sequence ends at the latest in as many ticks as tokens are left to it, whatever runs beside it.
struct Claim {
  Footprint needs;
  int64_t ticks = 0;
  std::string_view client;
  bool background = false;
};

// What may be held of the slots and pages at a time. One sequence it may always be.
struct AdmissionLimits {
  Footprint client;      // by a client, its sequences in the background not counted
  Footprint background;  // by all in the background together
};

struct Admission {
  std::vector<size_t> starting;    // places in the line, rising
  std::optional<size_t> promised;  // the first of the others that waits for room alone
  int64_t bound = 0;               // ticks after which there is room for it at the latest
};

// Who of `line` starts now, beside `running`, in what is `free`: in order, until somebody does not
// fit. That one is promised room after `bound` ticks: by then so many running sequences have ended
// for certain. Behind it who fits now may pass if it ends within the bound as well, or takes only
// what is left over then beside the promised (EASY backfilling).
//
// A client starts no more while what it holds would exceed its limit; the background likewise.
// Those that wait further ahead count as held, so that nobody is kept out by later requests.
// `keeps_promise`: line[0] was promised room before, and is bound by no client's limit.
//
// Bounded overtaking: if the caller puts the promised first in the next line, then it starts at
// most `bound` ticks after the promise, whoever comes. For let E be the tick of the promise plus
// the bound. What ran at the promise and is counted on has ended by E. Who passes later has ended
// by E too, or takes of what is left over at E. Sequences only end earlier than they may, so a
// bound that is computed anew from what is left to them is never later than E.
//
// Background: while others wait, nobody there is promised room, and who starts there delays none of
// them. For what those need who are not promised room is kept, now and behind the promised. Where
// it is not there, so that several wait for room, nobody starts in the background. So others wait
// for sequences of the background that were running when they came, each for at most the ticks left
// to it, and for none that started later: by the bounds, which sequences that end early improve on
// for all. As long as they need no more than the limit leaves of the capacity, they find room at
// once.
//
// REQUIRES: in `line` those in the background are behind all others.
Admission Admit(std::span<const Claim> line, std::span<const Claim> running, Footprint free,
                const AdmissionLimits& limits, bool keeps_promise);

// The requests that wait for a decoder, in a line that is fair to clients (ClassQueue), by what
// they reserve: their share of the slots, or of the pages if that is larger, times their ticks.
//
// No starvation: be L the most ticks that a request may take. Who is at the front of the fair line
// is below its client's limit after L ticks, when all that the client held has ended, and stays so;
// after L more, who was promised room before has started; then it is promised room itself, and
// starts within another L. So whoever waits starts after at most 3 L ticks for itself and for each
// of the finite number of requests that go before it in the fair line. Sequences in the background
// change nothing in this: they end within L ticks, and nobody there keeps a promise beside others.
//
// Requests in the background starve while others wait, which is meant. Once nobody else comes, the
// same holds for them, with their limit, kBackgroundShare of the capacity, in place of a client's.
// Not thread-safe.
class AdmissionLine {
 public:
  using Ticket = uint64_t;  // rising with each arrival
  using Clock = Caller::Clock;

  struct Promise {
    Ticket ticket = 0;
    int64_t bound = 0;  // ticks
  };

  // `max_client_share` of the capacity, in [0, 1], is what one client may hold while there are
  // others: who waits, or came within kPresence. An only client may hold everything. Those in the
  // background are no others.
  AdmissionLine(const Footprint& capacity, double max_client_share);

  static constexpr std::chrono::seconds kPresence{30};

  size_t size() const { return queue_.size(); }
  // Of these, those in the background.
  size_t background() const { return queue_.background().size(); }

  // REQUIRES: needs <= capacity; ticks > 0.
  Ticket Add(const Caller& caller, const Footprint& needs, int64_t ticks, Clock::time_point now);
  // Who gives up waiting.
  void Remove(Ticket ticket);
  // Takes those out of the line who start now, the first in line first.
  std::vector<Ticket> Take(std::span<const Claim> running, const Footprint& free,
                           Clock::time_point now);
  // What the last Take() promised.
  const std::optional<Promise>& promise() const { return promise_; }

 private:
  struct Request {
    Ticket ticket = 0;
    Footprint needs;
    int64_t ticks = 0;
    bool background = false;
  };
  using Queue = ClassQueue<Request>;

  void Saw(const Caller& caller, Clock::time_point now);
  AdmissionLimits Limits(Clock::time_point now) const;
  std::vector<const Queue::Entry*> Line() const;

  const Footprint capacity_;
  const Footprint shared_limit_;  // of a client beside others
  const Footprint background_limit_;
  Queue queue_;
  Ticket next_ticket_ = 0;
  std::map<Ticket, const Queue::Entry*> entries_;
  std::optional<Promise> promise_;
  std::string latest_client_;
  std::optional<Clock::time_point> latest_;  // when it came
  std::optional<Clock::time_point> other_;   // when the latest but this one came
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHING_ADMISSION_H_
