// When requests are sent.
#ifndef HIPPODROME_TOOLS_LOAD_LOAD_SCHEDULE_H_
#define HIPPODROME_TOOLS_LOAD_LOAD_SCHEDULE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <random>
#include <vector>

#include "tools/load/load_request.h"

namespace hippodrome {

// One point of a sweep.
struct LoadPlan {
  // Open loop: requests per second, which arrive as a Poisson process whatever becomes of those
  // before. 0: closed loop, where each of `concurrency` clients asks anew once it has its answer.
  double rate = 0;
  int64_t concurrency = 32;
  int64_t max_outstanding = 1024;  // of the open loop; what arrives beyond it is not sent
  LoadClock::duration warm_up{};   // what is due in it is sent and not counted
  LoadClock::duration duration{};  // of what is counted; 0: until `requests`
  int64_t requests = 0;            // that are counted; 0: until `duration`
  int64_t retries = 0;             // times that a refused request is sent again
  uint64_t seed = 0;               // of the arrivals
};

// A value in (0, 1], the same on all machines.
double UniformDraw(std::mt19937_64& random);

// Decides what is sent when; knows no clock: it is told the time. Not thread-safe.
class LoadSchedule {
 public:
  using Time = LoadClock::time_point;

  LoadSchedule(const LoadPlan& plan, Time begin);

  // When the next request is due; none: not before an answer has come, if ever.
  std::optional<Time> Due(Time now) const;

  struct Launch {
    int64_t index = 0;  // of the request, from 0; one that is sent again keeps its own
    Time intended;      // when it was due, for the first time
    bool again = false;
    bool sent = true;     // false: not to be sent, see max_outstanding
    bool counted = true;  // due after the warm-up
  };
  // Takes what is due. REQUIRES: Due(now) <= now.
  Launch Take(Time now);

  // A request that was sent has ended. True: it is going to be sent again.
  bool Ended(int64_t index, Time now, LoadOutcome outcome, int64_t retry_after);

  int64_t outstanding() const { return outstanding_; }
  int64_t retried() const { return retried_; }
  // Nothing is outstanding, and nothing will be due.
  bool Over(Time now) const { return outstanding_ == 0 && !Due(now).has_value(); }

 private:
  struct Again {
    Time time;
    int64_t index;
    bool operator>(const Again& other) const { return time > other.time; }
  };
  struct Request {
    Time intended;
    int64_t attempts = 1;
  };

  bool Ends(Time due) const;
  std::optional<Time> NextNew(Time now) const;
  Launch TakeNew(Time due);
  void DrawArrival();

  const LoadPlan plan_;
  const Time begin_;
  std::mt19937_64 random_;
  Time arrival_;  // the next of the open loop
  // Of the closed loop: when each idle client asks again.
  std::priority_queue<Time, std::vector<Time>, std::greater<>> clients_;
  std::priority_queue<Again, std::vector<Again>, std::greater<>> again_;
  std::vector<Request> requests_;  // by index
  int64_t outstanding_ = 0;        // with those that wait to be sent again
  int64_t counted_ = 0;
  int64_t retried_ = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_LOAD_LOAD_SCHEDULE_H_
